"""Speed of runs."""

from dataclasses import replace
from typing import Any

import numpy as np
from tests.unit.observe.compare.run_story import build_run
from tests.unit.observe.report.told_run import card
from tests.unit.observe.verdicts.series_story import build_process, build_steps

from tandem.observe.compare.judgement import Judgement
from tandem.observe.compare.speed import judge_speed
from tandem.observe.series.columns import Series


def judged(*runs: Series) -> dict[str, Judgement]:
    return {each.question.key: each for each in judge_speed(dict(zip("abc", runs, strict=False)))}


def test_the_faster_run_is_found_by_tokens_and_by_steps() -> None:
    found = judged(build_run(step_s=0.5), build_run(step_s=0.4, seed=2))
    assert found["tokens_per_s"].better == found["step_s"].better == "b"
    rate = found["tokens_per_s"].values[0]
    assert rate.low < 25_000 / 0.4 < rate.high


def test_a_difference_that_a_machine_makes_from_day_to_day_is_noise() -> None:
    steady = {number: build_run(steps=build_steps(1000, duration_s=0.5 * number)) for number in (1.0, 1.01)}
    assert judged(*steady.values())["tokens_per_s"].verdict == "inside noise"


def test_a_pace_that_drifts_has_a_wide_interval() -> None:
    drift = 0.5 * (1 + 0.5 * np.sin(np.linspace(0, 6, 1000)))
    found = judged(build_run(steps=build_steps(1000, duration_s=drift)), build_run(step_s=0.53, seed=2))
    values = {value.run: value for value in found["tokens_per_s"].values}
    assert values["a"].half > 5 * values["b"].half
    assert found["tokens_per_s"].verdict == "inside noise"


def test_steps_of_another_size_are_not_compared_and_tokens_are() -> None:
    twice: dict[str, Any] = {"target_tokens": np.full(1000, 50_000, np.int64)}
    found = judged(build_run(), build_run(steps=build_steps(1000, duration_s=0.8, **twice), seed=2))
    assert found["step_s"].verdict == "cannot tell"
    assert "not the same work" in found["step_s"].why
    assert found["tokens_per_s"].better == "b"


def test_tokens_of_other_pieces_are_not_compared() -> None:
    other = replace(card(), vocabulary=replace(card().vocabulary, size=99))
    assert judged(build_run(), build_run(step_s=0.1, card=other))["tokens_per_s"].verdict == "cannot tell"


def test_a_few_steps_tell_nothing() -> None:
    short = build_run(steps=build_steps(20, duration_s=0.1), seed=2)
    assert judged(build_run(), short)["tokens_per_s"].verdict == "cannot tell"


def test_other_machines_are_told_of() -> None:
    elsewhere = build_run(step_s=0.1, processes=(build_process(host="omega"),))
    found = judged(build_run(), elsewhere)["tokens_per_s"]
    assert found.better == "b"
    assert "not of the recipe alone" in found.why
