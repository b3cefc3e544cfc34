import os
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from tests.unit.launch.doctor.findings import host, mesh

from tandem.launch.doctor import sums as sums_module
from tandem.launch.doctor.bedside import Bedside, NoAnswerError
from tandem.launch.doctor.facts import SumFacts
from tandem.launch.doctor.sums import choose_members, examine_sums


@dataclass
class Patient:
    """A host that has one answer to a request to sum; none if it stays silent."""

    answer: Any
    asked: dict[str, Any] = field(default_factory=dict)
    is_closed: bool = False

    def ask(self, do: str, **what: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        if do == "close":
            self.is_closed = True
            future.set_result(None)
            return future
        if do == "listeners":
            assert self.is_closed, "the doctor's own listeners would be taken for somebody's"
            future.set_result({"0.0.0.0:22": "sshd"} | ({"10.0.0.1:4242": "python"} if self.asked else {}))
            return future
        assert do == "reduce"
        self.asked = what
        if isinstance(self.answer, str):
            future.set_exception(NoAnswerError(self.answer))
        elif self.answer is not None:
            future.set_result(self.answer)
        return future

    def wait(self, future: "Future[Any]", *, limit_s: float) -> Any:
        return future.result(limit_s)

    def get(self, do: str, **what: Any) -> dict[str, Any]:
        assert (do, what["address"], what["port"]) == ("mesh", "10.0.0.1", 0)
        return {"port": 4242, "certificate": "c"}


def summed(*answers: Any, nic: str = "") -> tuple[SumFacts, list[Patient]]:
    patients = [Patient(answer) for answer in answers]
    names = "abc"[: len(answers)]
    places = {
        name: (cast(Bedside, patient), "10.0.0.1") for name, patient in zip(names, patients, strict=True)
    }
    facts = {name: host(name) for name in names}
    found = examine_sums(places, facts, list(mesh(names).values()), gradient_bytes=400, nic=nic)
    assert found is not None
    return found, patients


GOOD = {"summed_bytes": 100, "seconds": 2.0}
LATE = "a: it took more than 60 s."


def test_all_hosts_take_part_where_all_connections_are_open() -> None:
    assert choose_members("abc", list(mesh().values())) == ["a", "b", "c"]


def test_a_host_that_the_others_cannot_reach_is_left_out() -> None:
    links = [
        replace(each, meeting_port="timed out") if pair[1] == "a" else each for pair, each in mesh().items()
    ]
    assert choose_members("abc", links) == ["b", "c"]


def test_a_host_without_any_link_is_left_out() -> None:
    assert choose_members("abcd", list(mesh("abc").values())) == ["a", "b", "c"]


def test_the_slowest_host_says_how_long_it_takes() -> None:
    found, _ = summed(GOOD, {**GOOD, "seconds": 3.0})
    assert (found.seconds, found.problem) == (3.0, "")


@pytest.mark.parametrize(
    "symptom", [LATE, "a: RuntimeError: [gloo] Timed out waiting 60000ms", "a: Connection closed by peer"]
)
def test_of_several_failures_the_cause_is_told_and_not_what_followed_from_it(symptom: str) -> None:
    found, _ = summed(symptom, GOOD, "c: ImportError: libcudart.so.12")
    assert found.problem == "c: ImportError: libcudart.so.12"


def test_a_failure_is_told_though_another_host_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_module, "_AFTERWARDS_S", 0.01)
    assert summed(None, "b: ImportError")[0].problem == "b: ImportError"
    assert summed(LATE, None)[0].problem == LATE


def test_a_host_that_answers_otherwise_breaks_nothing() -> None:
    assert "install the same" in summed(GOOD, {**GOOD, "seconds": 3.0, "colour": "red"})[0].problem
    assert "install the same" in summed({"summed_bytes": 3}, GOOD)[0].problem


@pytest.mark.parametrize(("nic", "interface"), [("", "ib0"), ("eth0", "eth0")])
def test_ranks_get_what_training_would_give_them(
    monkeypatch: pytest.MonkeyPatch, nic: str, interface: str
) -> None:
    own = {"NCCL_DEBUG": "INFO", "GLOO_SOCKET_IFNAME": "ib0", "RANK": "7", "HOME": "/home"}
    monkeypatch.setattr(os, "environ", own)
    for rank, patient in enumerate(summed(GOOD, GOOD, nic=nic)[1]):
        environment = patient.asked["environment"]
        assert environment["NCCL_DEBUG"] == "INFO"
        assert environment["GLOO_SOCKET_IFNAME"] == interface
        assert environment["NCCL_SOCKET_IFNAME"] == "=eth0"
        assert environment["RANK"] == str(rank)
        assert "HOME" not in environment


def test_what_listens_is_looked_at_before_meanwhile_and_afterwards() -> None:
    found, patients = summed(GOOD, GOOD)
    assert [host.mesh for host in found.listening] == ["10.0.0.1:4242"] * 2
    assert all(host.before == {"0.0.0.0:22": "sshd"} for host in found.listening)
    assert all("10.0.0.1:4242" in host.after for host in found.listening)
    assert [patient.asked["meeting"]["own"] for patient in patients] == [0, 1]


def test_bus_speed_and_step_time_follow_from_bytes_and_seconds() -> None:
    sums = SumFacts(
        hosts=("a", "b", "c", "d"),
        left_out=(),
        device="cpu",
        gradient_bytes=400,
        summed_bytes=100,
        seconds=2.0,
    )
    assert sums.bus_bytes_per_s == pytest.approx(75.0)
    assert sums.step_s == pytest.approx(8.0)
