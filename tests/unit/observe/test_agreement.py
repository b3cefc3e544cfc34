from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.exchange_story import carried, exchanged, link
from tests.unit.observe.verdicts.series_story import build_series

from tandem.observe.agreement import contradictions, reconcile
from tandem.observe.finding import Evidence, Finding
from tandem.observe.series.columns import Series
from tandem.observe.verdicts import judge_run


def with_number(findings: tuple[Finding, ...], key: str, name: str, factor: float) -> list[Finding]:
    """The same answers, one number of one of them multiplied."""

    def changed(item: Evidence) -> Evidence:
        is_meant = item.name == name and isinstance(item.value, int | float)
        return replace(item, value=float(item.value) * factor) if is_meant else item

    return [
        replace(finding, evidence=tuple(map(changed, finding.evidence))) if finding.key == key else finding
        for finding in findings
    ]


def busy_link() -> Series:
    series = exchanged(network_s=1.0, links=(link(240e6),))
    return replace(series, samples=carried(series, 244e6))


@pytest.mark.parametrize(
    "series",
    [busy_link(), exchanged(network_s=0.02, peak=9e12), exchanged(hosts=("alpha",)), build_series()],
    ids=["slow link", "busy", "one rank", "plain"],
)
def test_answers_from_one_run_agree(series: Series) -> None:
    assert contradictions(judge_run(series)) == ()


@pytest.mark.parametrize(
    ("key", "name", "factor", "lowered"),
    [
        ("network", "step", 2.0, {"network", "step_time"}),
        ("network", "exposed communication", 0.2, {"network", "step_network"}),
        ("step_network", "computing", 2.0, {"step_network"}),
        ("gpus", "throughput", 2.0, {"gpus", "step_time"}),
        ("network", "alpha eth0 full", 5.0, {"network", "step_network"}),
        ("duration", "start-up and compiling", 1e4, {"duration"}),
        ("gpus", "computing", 2.0, {"gpus"}),
        ("network", "exposed share", 2.0, {"network", "step_time"}),
        ("network", "step without network", 0.5, {"network"}),
        ("network", "step with ten times the link", 1.5, {"network"}),
        ("network", "bytes a step, predicted", 20.0, {"network", "step_network"}),
    ],
)
def test_numbers_that_cannot_both_hold_lower_both_answers_and_say_why(
    key: str, name: str, factor: float, lowered: set[str]
) -> None:
    before = judge_run(busy_link())

    after = reconcile(with_number(before, key, name, factor))

    for old, new in zip(before, after, strict=True):
        if new.key in lowered:
            assert new.confidence == "low"
            assert new.doubt
            assert new.verdict == old.verdict
        elif new.key not in {"network", "step_network", "step_time"}:
            assert new.confidence == old.confidence


def test_phases_that_another_step_time_contradicts_are_not_sure() -> None:
    series = exchanged(network_s=1.0)
    steps = replace(series.steps, duration_s=series.steps.duration_s * np.float64(0.5))

    answers = {finding.key: finding for finding in judge_run(replace(series, steps=steps))}

    assert answers["network"].confidence == "low"
    assert "rank 0's steps take" in answers["network"].doubt


@pytest.mark.parametrize("advice", ["Get a faster link.", "A link twice as fast would help."])
def test_a_faster_link_is_no_advice_where_the_network_is_not_to_blame(advice: str) -> None:
    answers = judge_run(exchanged(network_s=0.01))
    told = [replace(each, advice=advice) if each.key == "gpus" else each for each in answers]
    assert {each.key: each.verdict for each in answers}["network"] == "no"
    assert [each.keys for each in contradictions(told)] == [("gpus", "network")]
