from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.observe.verdicts.series_story import (
    build_imported,
    build_series,
    build_start,
    build_steps,
    rate,
)

from tandem.observe.finding import Finding
from tandem.observe.series.columns import Steps
from tandem.observe.verdicts.schedule import judge

CONFIDENCES = ("none", "low", "medium", "high")
REFERENCE = {"schedule": {"d_model": 512, "learning_rate": 2.0, "warmup_steps": 8000}}


def value(finding: Finding, name: str) -> float | str:
    (found,) = (each.value for each in finding.evidence if each.name == name)
    return found


def test_rates_that_follow_the_plan_are_told_with_formula_and_peak() -> None:
    finding = judge(build_series())
    assert (finding.number, finding.key, finding.verdict, finding.confidence) == (
        6,
        "schedule",
        "measured",
        "high",
    )
    assert "0.0007 · min(step / 400, (400 / step)^0.5)" in finding.answer
    assert "highest 0.0007 at step 400" in finding.answer
    assert "neither causes BLEU" in finding.answer
    assert value(finding, "largest difference from the plan") == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(("step", "is_ahead"), [(900, True), (1000, False)])
def test_a_fall_that_the_run_has_not_finished_is_told_as_still_to_come(step: int, is_ahead: bool) -> None:
    text = "inverse_sqrt: 0.0007 · min(step / 400, (400 / step)^0.5); the last 400 steps fall to zero"
    number = np.arange(1.0, step + 1)
    steps = build_steps(step, learning_rate=rate(number) * np.clip((1001 - number) / 401, 0.0, 1.0))
    finding = judge(build_series(steps=steps, starts=((5.0, build_start(max_steps=1000, schedule=text)),)))
    assert finding.confidence == "high"
    assert ("still to come" in finding.answer) == is_ahead


def test_rates_that_leave_the_plan_are_told_with_how_far() -> None:
    rates = rate(np.arange(1.0, 1001.0))
    rates[700:] *= 0.5
    finding = judge(build_series(steps=build_steps(learning_rate=rates)))
    assert "differ from it by up to 50.0 %" in finding.answer
    assert finding.confidence == "medium"


def test_an_imported_plan_without_rates_is_told_as_a_plan_only() -> None:
    steps = build_steps(45, first=100, every=100, learning_rate=np.nan)
    finding = judge(build_series(steps=steps, imported=build_imported(REFERENCE), recipe={}, starts=()))
    assert finding.verdict == "measured"
    assert finding.confidence == "low"
    assert finding.missing == ("the learning rate as run",)
    assert "highest 0.000988 at step 8,000" in finding.answer


def test_an_imported_run_may_count_its_steps_from_nought() -> None:
    number = np.arange(100.0, 20_000.0, 100.0)
    rates = 2.0 * 512**-0.5 * np.minimum((number + 1) ** -0.5, (number + 1) * 8000**-1.5)
    steps = build_steps(len(number), first=100, every=100, learning_rate=rates)
    finding = judge(build_series(steps=steps, imported=build_imported(REFERENCE), recipe={}, starts=()))
    assert "follow it" in finding.answer
    assert finding.confidence == "high"


@pytest.mark.parametrize(
    ("rates", "kind"),
    [
        (rate(np.arange(1.0, 1001.0)), "inverse_sqrt"),
        (np.full(1000, 3e-4), "constant"),
        (1e-3 * np.minimum(np.arange(1, 1001) / 100, (1101 - np.arange(1, 1001)) / 1001), "linear"),
    ],
)
def test_rates_without_a_formula_are_recognised(
    rates: np.ndarray[tuple[int], np.dtype[np.float64]], kind: str
) -> None:
    series = build_series(steps=build_steps(learning_rate=rates), recipe={}, starts=())
    finding = judge(series)
    assert f"look like {kind}" in finding.answer
    assert finding.confidence == "medium"


def test_rates_of_no_known_shape_are_not_named() -> None:
    rates = 1e-3 * (1.1 + np.sin(np.arange(1000) / 30))
    finding = judge(build_series(steps=build_steps(learning_rate=rates), recipe={}, starts=()))
    assert "fit none that is known" in finding.answer
    assert finding.confidence == "medium"
    assert finding.missing == ("the formula of the learning rate",)


@settings(max_examples=60, deadline=None)
@given(gone=st.tuples(st.integers(1, 1000), st.integers(1, 1000)).map(sorted), has_plan=st.booleans())
def test_steps_that_left_no_line_never_make_it_surer_nor_lower_the_highest_rate(
    gone: list[int], has_plan: bool
) -> None:
    first, last = gone
    parts: dict[str, Any] = {} if has_plan else {"recipe": {}, "starts": ()}
    series = build_series(**parts)
    steps, whole = series.steps, judge(series)
    kept = (steps.step < first) | (steps.step > last)
    left = Steps(**{each.name: getattr(steps, each.name)[kept] for each in fields(Steps)})

    found = judge(replace(series, steps=left))

    assert CONFIDENCES.index(found.confidence) <= CONFIDENCES.index(whole.confidence)
    if found.confidence == "high":
        assert float(value(found, "highest rate as run")) >= 0.99 * float(value(whole, "highest rate as run"))
        assert kept.mean() >= 0.9


def test_a_peak_whose_steps_left_no_line_is_not_told_as_run() -> None:
    """Four steps of warm-up, and the line of the highest is spoilt."""
    number = np.arange(1.0, 234.0)
    steps = build_steps(len(number), learning_rate=rate(number, warmup=4))
    kept = steps.step != 4
    left = Steps(**{each.name: getattr(steps, each.name)[kept] for each in fields(Steps)})
    text = "inverse_sqrt: 0.0007 · min(step / 4, (4 / step)^0.5)"
    finding = judge(build_series(steps=left, starts=((5.0, build_start(max_steps=233, schedule=text)),)))
    assert (finding.verdict, finding.confidence) == ("measured", "medium")
    assert "highest rate as run" not in {each.name for each in finding.evidence}
    assert value(finding, "highest rate that was logged") == pytest.approx(7e-4 * 0.8**0.5)
    assert finding.missing == ("the learning rate of the steps where it was highest",)


def test_without_plan_and_rates_it_cannot_tell() -> None:
    start = build_start(schedule="")
    finding = judge(build_series(steps=build_steps(learning_rate=np.nan), recipe={}, starts=((5.0, start),)))
    assert (finding.verdict, finding.confidence) == ("cannot tell", "none")
    assert len(finding.missing) == 2


def test_a_run_without_a_step_tells_its_plan() -> None:
    assert judge(build_series(steps=build_steps(0))).verdict == "measured"


@pytest.mark.parametrize(
    ("warmup", "says"),
    [
        (400, "It rises so that the first, unsure gradients cannot throw the model off, and then stays"),
        (0, "It stays"),
    ],
)
def test_a_constant_rate_is_not_said_to_fall(warmup: int, says: str) -> None:
    schedule = f"constant: 0.0003 · min(1, step / {max(warmup, 1)})"
    finding = judge(build_series(starts=((5.0, build_start(schedule=schedule)),)))
    assert says in finding.answer
    assert "falls" not in finding.answer
