import signal
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

import pytest

from tandem.launch.cause import Cause
from tandem.launch.channel import Message
from tandem.launch.hosts import Host
from tandem.launch.member import Member
from tandem.launch.round import Round
from tandem.launch.ssh import Ssh
from tandem.launch.stall import SHORTEST_S


class Heard(Member):
    """A host that keeps what it is told."""

    def send(self, message: Message) -> None:
        told.setdefault(self.name, []).append(message)


told: dict[str, list[Message]] = {}


@pytest.fixture
def members() -> list[Member]:
    told.clear()
    return [
        Heard(
            host=Host(name=name),
            ssh=Ssh(),
            post=SimpleQueue(),
            state="ready",
            facts={"workers": workers, "disk": name},
            address=f"10.0.0.{number}",
            nic="eth0",
        )
        for number, (name, workers) in enumerate([("a", 2), ("b", 1), ("c", 1)], start=1)
    ]


@pytest.fixture
def now(members: list[Member]) -> Round:
    return Round(7, members, task_run="runs/x")


def ended(**what: Any) -> Mapping[str, Any]:
    nothing = {
        "failed": {},
        "failures": [],
        "missed": "",
        "was_ended": False,
        "leaves": False,
        "newest": None,
    }
    return {"is": "ended", "round": 7, **nothing, **what}


def failure(rank: int, kind: str, message: str = "x", *, time_s: float = 0.0) -> dict[str, Any]:
    return {"rank": rank, "kind": kind, "message": message, "time_s": time_s}


def beat(pulses: Mapping[str, tuple[int, int, int, str]], *, at: float = 0.0) -> Mapping[str, Any]:
    names = ("step", "begun", "done", "collective")
    held = {rank: {**dict(zip(names, pulse, strict=True)), "changed_s": at} for rank, pulse in pulses.items()}
    return {"is": "beat", "round": 7, "pulses": held}


def cause(now: Round) -> Cause:
    found = now.outcome()
    assert isinstance(found, Cause)
    return found


def orders(host: str) -> list[str]:
    return [message["do"] for message in told.get(host, [])]


def test_ranks_follow_the_order_of_hosts_and_each_host_knows_its_place(now: Round) -> None:
    now.start(meeting={"port": 5}, command=["m"], received={"b": {"f": 3}}, is_explicit=False)
    messages = [told[host][0] for host in "abc"]
    assert [message["meeting"] for message in messages] == [{"port": 5, "own": place} for place in range(3)]
    assert [(message["first_rank"], message["world_size"]) for message in messages] == [
        (0, 4),
        (2, 4),
        (3, 4),
    ]
    assert told["b"][0]["received"] == {"f": 3}
    assert told["a"][0]["received"] is None
    assert told["c"][0]["found"] == {"GLOO_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "=eth0"}
    assert told["c"][0]["environment"] == {}


def test_an_interface_that_was_asked_for_counts_more_than_the_environment(now: Round) -> None:
    now.start(meeting={"port": 5}, command=["m"], received={}, is_explicit=True)
    assert told["c"][0]["environment"]["GLOO_SOCKET_IFNAME"] == "eth0"


def test_it_is_over_well_when_all_have_ended_well(now: Round) -> None:
    for host in "abc":
        assert not now.is_over
        now.take(host, ended())
    assert now.is_over
    assert now.outcome() is None
    assert not told


def test_what_belongs_to_another_round_is_not_heard(now: Round) -> None:
    now.take("a", {**ended(), "round": 6})
    assert not now.is_over
    assert not orders("b")


def test_one_failure_ends_all_and_the_rank_is_named_with_its_host(now: Round) -> None:
    now.take("b", ended(failed={"2": -9}))
    assert (orders("a"), orders("b"), orders("c")) == (["end"], [], ["end"])
    now.take("a", ended(failed={"0": 1, "1": 1}, failures=[failure(0, "peer"), failure(1, "peer")]))
    now.take("c", ended(failed={"3": -9}, was_ended=True))
    found = cause(now)
    assert (found.who, found.host, found.rank, found.is_final) == ("Rank 2 on b", "b", 2, False)
    assert found.hint == "what it printed is in b:runs/x/log/rank-00002.txt"


def test_a_sentence_counts_more_than_a_host_that_was_lost(now: Round) -> None:
    now.take("a", ended(failed={"0": 1}, failures=[failure(0, "sentence", "The data differ.")]))
    now.lose("b", "its connection broke")
    now.take("c", ended())
    assert cause(now).reason == "The data differ."


def test_of_two_sentences_the_first_by_the_heads_clock_is_told(now: Round, members: list[Member]) -> None:
    members[1].offset_s = -100.0
    now.take("a", ended(failed={"0": 1}, failures=[failure(0, "sentence", "Second.", time_s=50.0)]))
    now.take("b", ended(failed={"2": 1}, failures=[failure(2, "sentence", "First.", time_s=120.0)]))
    now.lose("c", "gone")
    assert cause(now).reason == "First."


def test_a_lost_host_is_named_with_step_and_collective_and_the_others_end_at_once(now: Round) -> None:
    now.take("a", beat({"0": (41, 90, 89, "sum of bucket 3"), "1": (41, 90, 89, "sum of bucket 3")}))
    now.lose("b", "no sign of life for 20 s")
    assert told["a"][-1] == {"do": "end", "grace_s": 0.0}
    for host in "ac":
        now.take(host, ended(failed={"0": -9}, was_ended=True))
    found = cause(now)
    assert (found.who, found.rank) == ("b", 2)
    assert found.reason == "no sign of life for 20 s in step 41, the last collective being sum of bucket 3"


def test_a_host_whose_ranks_had_ended_is_not_lost_any_more(now: Round) -> None:
    now.take("b", ended())
    now.lose("b", "its connection broke")
    assert not orders("a")
    for host in "ac":
        now.take(host, ended())
    assert now.outcome() is None


def test_workers_that_could_not_start_are_worth_another_try(now: Round) -> None:
    now.take("a", ended(missed="no more processes"))
    for host in "bc":
        now.take(host, ended(was_ended=True))
    found = cause(now)
    assert (found.who, found.is_final) == ("a", False)
    assert found.reason == "its workers could not start: no more processes"


def test_ranks_that_somebody_else_asked_to_stop_are_a_loss(now: Round) -> None:
    now.take("c", ended(failures=[failure(3, "stopped", "SIGTERM")]))
    for host in "ab":
        now.take(host, ended())
    assert (cause(now).host, cause(now).reason) == ("c", "its ranks got SIGTERM")


def test_ranks_that_we_asked_to_stop_have_ended_well(now: Round) -> None:
    for _ in range(3):
        now.pass_on(signal.SIGTERM)
    assert orders("a") == ["signal"]
    for host, rank in (("a", 0), ("b", 2), ("c", 3)):
        now.take(host, ended(failures=[failure(rank, "stopped", "SIGTERM")]))
    assert now.outcome() is None


def test_room_is_made_for_a_host_once_and_not_before_there_was_a_step(now: Round) -> None:
    now.make_room()
    now.take("b", beat({"2": (10, 1, 1, "sum")}))
    now.make_room()
    assert not orders("a")
    now.take("b", beat({"2": (12, 3, 3, "sum")}))
    for _ in range(2):
        now.make_room()
    assert orders("a") == ["signal"]
    for host, rank in (("a", 0), ("b", 2), ("c", 3)):
        now.take(host, ended(failures=[failure(rank, "stopped", "SIGTERM")]))
    assert now.outcome() == "again"


def test_a_stall_ends_the_round_and_names_the_rank_on_its_host(now: Round) -> None:
    for step in (1, 2, 4):
        now.take("a", beat({"0": (step, step, step, "sum"), "1": (step, step, step, "sum")}))
        now.take("b", beat({"2": (step, step, step, "sum")}))
    now.take("a", beat({"0": (4, 5, 4, "gather"), "1": (4, 5, 4, "gather")}))
    now.look(SHORTEST_S * 10**6)
    assert told["b"][-1] == {"do": "end", "grace_s": 0.0}
    for host in "abc":
        now.take(host, ended(was_ended=True))
    found = cause(now)
    assert found.who == "Rank 2 on b"
    assert "the last collective being gather in step 4" in found.reason


def test_without_room_for_pulses_nothing_is_taken_for_a_stall(now: Round) -> None:
    now.take("a", {"is": "beat", "round": 7, "pulses": None})
    now.look(SHORTEST_S * 10**6)
    assert not orders("b")
