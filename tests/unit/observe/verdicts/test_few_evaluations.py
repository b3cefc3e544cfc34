from dataclasses import replace

import numpy as np
from tests.unit.observe.verdicts.curve_story import Story
from tests.unit.observe.verdicts.series_story import build_evaluations, build_series, build_steps

from tandem.observe.outlook import read_outlook
from tandem.observe.verdicts.few_evaluations import ground_stuck, judge_training_loss

STEPS = list(range(100, 1001, 100))


def test_without_evaluations_a_decay_that_is_ahead_says_not_yet() -> None:
    series = Story(kind="cosine", steps=400, planned=1000).series()
    series = replace(
        series,
        evaluations=(),
        steps=replace(series.steps, loss=np.random.default_rng(1).normal(2.0, 0.05, 400)),
    )
    draft = judge_training_loss(series, read_outlook(series))
    assert draft.verdict == "no"
    assert "fall to zero up to step 1,000" in draft.answer


def test_how_little_is_learnt_is_measured_by_bleu_and_else_a_rule_of_thumb() -> None:
    loss = np.linspace(10.4, 7.0, 1000)
    with_bleu = build_evaluations(STEPS, [7.0] * 10, bleu=[0.3] * 10, half=0.2)
    without = build_evaluations(STEPS, [7.0] * 10)
    assert ground_stuck(build_series(steps=build_steps(loss=loss), evaluations=with_bleu)).kind == "measured"
    assert ground_stuck(build_series(steps=build_steps(loss=loss), evaluations=without)).kind == "assumed"
