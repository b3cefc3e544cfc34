"""Labels of runs with injected faults come from what the faults took, and from nothing that a verdict says."""

import pytest
from benchmarks.truth.injected import label_injected, measure_taken
from benchmarks.truth.injected_cases import CASES, Case

EVERY = 10


def ends(*seconds: float) -> list[tuple[int, int]]:
    """Steps that end one after another."""
    at, result = 0.0, []
    for step, lasting in enumerate(seconds, start=1):
        at += lasting
        result.append((step, round(at * 1e9)))
    return result


def case(kind: str, *, is_lab: bool = True) -> Case:
    return next(each for each in CASES if each.kind == kind and each.is_lab == is_lab and each.inject)


def test_what_a_fault_takes_is_what_steps_take_beyond_those_that_were_left_alone() -> None:
    healthy, struck = [1.0] * 19, [2.0] * 20
    taken = measure_taken(ends(*healthy, *struck), begun_ns=round(19e9), every=EVERY)
    assert (taken.healthy_step_s, taken.injected_step_s) == (1.0, 2.0)
    # Of each ten steps one holds an evaluation: it does not count.
    counted = 14 + 2 * 18
    assert taken.low == taken.high == pytest.approx(18 / counted)


def test_the_time_of_evaluations_is_no_fault() -> None:
    seconds = [5.0 if step % EVERY == 1 else 1.0 for step in range(1, 40)]
    taken = measure_taken(ends(*seconds), begun_ns=round(25e9), every=EVERY)
    assert taken.high == 0


def test_what_a_disk_takes_is_taken_after_evaluations() -> None:
    seconds = [5.0 if step % EVERY == 1 and step > 25 else 1.0 for step in range(1, 40)]
    taken = measure_taken(ends(*seconds), begun_ns=round(25e9), every=None)
    assert taken.low == taken.high == pytest.approx(4 / (35 + 4))


def test_a_link_of_a_known_rate_is_not_called_healthy() -> None:
    labels = {each.name: label_injected(each, None) for each in CASES if each.kind == "none"}
    assert labels["healthy-lab"]["network"] == {"no"}
    assert "network" not in labels["healthy-1gbit"]


def test_where_steps_vary_the_label_says_between_what_and_what() -> None:
    healthy = [0.8, 1.2] * 10
    taken = measure_taken(ends(*healthy, *[1.3] * 19), begun_ns=round(20e9), every=EVERY)
    assert 0 < taken.low < 0.12 < taken.high


def test_too_few_healthy_steps_make_no_label() -> None:
    with pytest.raises(RuntimeError, match="too few"):
        measure_taken(ends(*[1.0] * 8), begun_ns=round(4e9), every=EVERY)


@pytest.mark.parametrize(
    ("kind", "is_lab", "network", "gpus"),
    [
        ("network", True, {"yes"}, {"no"}),
        ("rank", True, {"no"}, {"no", "partly"}),
        ("data", False, {"no"}, {"no"}),
        ("disk", False, {"no"}, {"no"}),
    ],
)
def test_the_half_of_the_time_is_the_faults_own(
    kind: str, is_lab: bool, network: set[str], gpus: set[str]
) -> None:
    taken = measure_taken(ends(*[1.0] * 19, *[2.4] * 30), begun_ns=round(19e9), every=EVERY)
    assert 0.4 < taken.low < 0.5
    labels = label_injected(case(kind, is_lab=is_lab), taken)
    assert (set(labels["network"]), set(labels["gpus"])) == (network, gpus)


def test_each_run_has_a_name_of_its_own_and_there_are_forty_with_a_fault() -> None:
    names = [each.name for each in CASES]
    assert len(set(names)) == len(names)
    assert sum(each.kind != "none" for each in CASES) >= 40
