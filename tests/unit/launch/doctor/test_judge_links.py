from dataclasses import replace
from functools import partial

import pytest
from tests.unit.launch.doctor.findings import examination, host, link, mesh

from tandem.launch.doctor.facts import Listening, Outcome, SumFacts
from tandem.launch.doctor.judge_links import judge_links, judge_listening, judge_sums
from tandem.launch.doctor.line import Line
from tandem.launch.doctor.needs import Needs

NAN = float("nan")
SUMS = SumFacts(
    hosts=("a", "b"), left_out=(), device="cpu", gradient_bytes=10**8, summed_bytes=10**7, seconds=0.1
)


def bad(lines: list[Line]) -> list[tuple[str, str, str]]:
    return [(line.host, line.what, line.verdict) for line in lines if line.verdict != "fine"]


def test_healthy_links_are_fine_and_each_direction_has_its_figures() -> None:
    lines = list(judge_links(examination(links=list(mesh().values()))))
    assert bad(lines) == []
    assert [line.value for line in lines if line.what == "link"] == ["800 Mb/s, 100 µs there and back"] * 6


@pytest.mark.parametrize("meeting", [True, False])
def test_a_port_where_somebody_listens_and_does_not_answer_ends_no_run(meeting: bool) -> None:
    silent = partial(replace, latency_s=NAN, bytes_per_s=NAN, loss=NAN, meeting_port="no answer")
    links = [
        silent(each, fresh_port="open" if meeting else "no answer") if pair[1] == "b" else each
        for pair, each in mesh().items()
    ]
    assert all(each.is_open for each in links)
    lines = list(judge_links(replace(examination(links=links), port=7777)))
    assert bad(lines) == [("b", "ports", "poor")]


@pytest.mark.parametrize(("loss", "verdict"), [(0.0009, None), (0.002, "poor"), (0.03, "broken")])
def test_a_lossy_host_is_named_once_with_its_worst_loss(loss: float, verdict: str | None) -> None:
    links = [replace(each, loss=loss if "b" in pair else 0.0) for pair, each in mesh().items()]
    lines = list(judge_links(examination(links=links)))
    assert bad(lines) == ([("b", "loss", verdict)] if verdict else [])


def test_a_lossy_link_is_not_also_called_slow() -> None:
    links = [
        replace(each, loss=0.03, bytes_per_s=1e6) if "b" in pair else each for pair, each in mesh().items()
    ]
    assert bad(list(judge_links(examination(links=links)))) == [("b", "loss", "broken")]


def test_a_link_much_slower_than_the_others_is_poor() -> None:
    links = [link(*pair, bytes_per_s=3e7 if pair == ("a", "b") else 1e8) for pair in mesh("abc")]
    assert bad(list(judge_links(examination(links=links)))) == [("a → b", "link", "poor")]


def test_a_link_at_a_fiftieth_of_the_other_is_broken_with_what_it_adds_to_a_step() -> None:
    needs = replace(Needs.of(None), gradient_bytes=10**8)
    links = [link("a", "b", bytes_per_s=2e6), link("b", "a", bytes_per_s=1e8)]
    lines = list(judge_links(examination([host("a"), host("b")], links, needs=needs)))
    assert bad(lines) == [("a → b", "link", "broken")]
    line = next(line for line in lines if line.verdict != "fine")
    assert line.step_s == pytest.approx(50 - 1)
    assert "carries 2 % of the 800 Mb/s of the fastest" in line.cure
    assert "(100.0 MB) take 50 s over it, 1 s over the fastest: 49 s more a step" in line.cure


def test_a_slow_host_of_three_is_noticed_though_most_links_are_slow() -> None:
    links = [link(*pair, bytes_per_s=2e7 if "c" in pair else 1e8) for pair in mesh("abc")]
    slow = bad(list(judge_links(examination(links=links))))
    assert {name for name, _, _ in slow} == {"a → c", "c → a", "b → c", "c → b"}


def test_what_loss_costs_is_told_from_what_still_passed() -> None:
    needs = replace(Needs.of(None), gradient_bytes=10**8)
    links = [link("a", "b", bytes_per_s=1e7, loss=0.03), link("b", "a")]
    lines = list(judge_links(examination([host("a"), host("b")], links, needs=needs)))
    assert bad(lines) == [("a → b", "loss", "broken")]
    (line,) = [line for line in lines if line.verdict != "fine"]
    assert line.step_s == pytest.approx(10 - 1)
    assert "9 s more a step" in line.cure


def test_where_no_datagram_passes_the_loss_is_unknown_and_not_bad() -> None:
    lines = list(judge_links(examination(links=[link(loss=NAN)])))
    assert bad(lines) == []
    assert "no UDP passes" in next(line.value for line in lines if line.what == "loss")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [("timed out", "a firewall drops it"), ("refused", "turned away"), ("no route", "routes")],
)
def test_why_a_connection_fails_decides_the_cure(outcome: Outcome, words: str) -> None:
    links = [
        replace(each, fresh_port=outcome, meeting_port=outcome, bytes_per_s=NAN, latency_s=NAN, loss=NAN)
        if pair[1] == "c"
        else each
        for pair, each in mesh().items()
    ]
    lines = list(judge_links(examination(links=links)))
    assert bad(lines) == [("c", "ports", "broken")]
    assert words in next(line.cure for line in lines if line.cure)


def test_a_closed_meeting_port_alone_is_told_with_its_number() -> None:
    links = [replace(each, meeting_port="timed out") for pair, each in mesh().items() if pair == ("a", "b")]
    lines = list(judge_links(examination(links=links)))
    assert bad(lines) == [("a → b", "ports", "broken")]
    assert next(line.value for line in lines if line.what == "ports") == "to port 29400: timed out"


def test_where_hosts_may_listen_anywhere_no_port_is_named() -> None:
    links = [replace(each, fresh_port="timed out", meeting_port="timed out") for each in [link("a", "b")]]
    line = next(
        line for line in judge_links(replace(examination(links=links), port=0)) if line.what == "ports"
    )
    assert line.value == "to a free port: timed out"
    assert "give it as --port" in line.cure


def test_one_open_port_is_enough() -> None:
    links = [replace(each, fresh_port="timed out") for each in mesh().values()]
    assert bad(list(judge_links(examination(links=links)))) == []


SSH = {"0.0.0.0:22": "sshd"}
LISTENING = Listening(
    host="a", mesh="10.0.0.1:7", before=SSH, during={**SSH, "10.0.0.1:7": "python"}, after=SSH
)


def test_only_the_mesh_may_listen_because_of_a_run() -> None:
    (line,) = judge_listening(examination(sums=replace(SUMS, listening=(LISTENING,))))
    assert line.verdict == "fine"
    assert (
        line.value
        == "before 0.0.0.0:22 (sshd); while summing also 10.0.0.1:7 (the mesh); afterwards as before"
    )


def test_another_listener_of_a_run_is_a_finding_with_its_program() -> None:
    open_too = replace(LISTENING, during={**LISTENING.during, "0.0.0.0:9": "python"})
    (line,) = judge_listening(examination(sums=replace(SUMS, listening=(open_too,))))
    assert line.verdict == "poor"
    assert line.cure.startswith("Strangers can connect to 0.0.0.0:9 (python) on a")


def test_a_port_that_stays_open_is_a_finding() -> None:
    left = replace(LISTENING, after={**SSH, "10.0.0.1:7": "python"})
    (line,) = judge_listening(examination(sums=replace(SUMS, listening=(left,))))
    assert line.verdict == "poor"
    assert line.value.endswith("afterwards still 10.0.0.1:7")


def test_a_port_that_another_program_has_is_poor() -> None:
    links = [replace(each, meeting_port="taken") if pair[1] == "b" else each for pair, each in mesh().items()]
    assert bad(list(judge_links(examination(links=links)))) == [("b", "ports", "poor")]


def test_summing_is_compared_with_the_slowest_link_and_told_for_a_step() -> None:
    (line,) = judge_sums(examination(links=[link("a", "b"), link("b", "a")], sums=SUMS))
    assert line.verdict == "fine"
    assert "10.0 MB in 100 ms, 800 Mb/s each way, 100 % of the slowest link" in line.value
    assert "(100.0 MB) take 1 s" in line.value


def test_summing_far_below_the_links_is_poor() -> None:
    slow = replace(SUMS, seconds=0.3)
    (line,) = judge_sums(examination(links=[link("a", "b"), link("b", "a")], sums=slow))
    assert (line.what, line.verdict) == ("all-reduce", "poor")


def test_summing_that_failed_is_broken_with_the_reason() -> None:
    (line,) = judge_sums(examination(sums=replace(SUMS, problem="b: it took too long")))
    assert line.verdict == "broken"
    assert "b: it took too long" in line.cure


def test_a_link_that_connects_but_carries_nothing_is_broken() -> None:
    stuck = replace(link(), latency_s=NAN, bytes_per_s=NAN, loss=NAN, problem="a: timed out")
    lines = list(judge_links(examination(links=[stuck])))
    assert bad(lines) == [("a → b", "link", "broken")]
    assert "smaller MTU" in next(line.cure for line in lines if line.cure)


def test_a_stream_that_stalls_on_a_lossy_host_is_not_another_trouble() -> None:
    links = [replace(each, loss=0.03) if "b" in pair else each for pair, each in mesh().items()]
    stuck = replace(link("c", "b"), latency_s=NAN, bytes_per_s=NAN, loss=NAN, problem="c: timed out")
    links = [stuck if (each.sender, each.receiver) == ("c", "b") else each for each in links]
    assert bad(list(judge_links(examination(links=links)))) == [("b", "loss", "broken")]
