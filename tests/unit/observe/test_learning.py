import math

import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import build_evaluations, build_series, build_steps

from tandem.observe.learning import bleu_curve, divergence, gap_curve, is_stuck, valid_curve


def test_curves_leave_out_step_nought_and_what_is_not_finite() -> None:
    series = build_series(evaluations=build_evaluations([0, 100, 200, 300], [9.0, 3.0, math.nan, 2.5]))
    assert valid_curve(series).step.tolist() == [100, 300]
    assert len(bleu_curve(series)) == len(gap_curve(series)) == 0


def test_an_evaluation_that_was_logged_again_is_one_value() -> None:
    steps, values = [100, 200, 200, 201, 300, 400], [4.0, 3.0, 3.1, 3.1, 3.1, 2.5]
    series = build_series(evaluations=build_evaluations(steps, values, bleu=values, half=0.5))
    for curve in (valid_curve(series), bleu_curve(series)):
        assert curve.step.tolist() == [100, 201, 300, 400]
        assert curve.value.tolist() == [4.0, 3.1, 3.1, 2.5]


def test_a_smaller_valid_set_has_more_noise() -> None:
    few, many = (
        valid_curve(
            build_series(evaluations=build_evaluations([100, 200], [3.0, 2.5], valid_tokens=tokens))
        ).floor
        for tokens in (5_000, 80_000)
    )
    assert few == pytest.approx(4 * many)


def test_a_healthy_run_did_not_come_apart() -> None:
    random = np.random.default_rng(1)
    loss = 2 + 8 * np.arange(1, 1001) ** -0.3 + random.normal(0, 0.2, 1000)
    loss[500] = 40.0
    assert not divergence(build_series(steps=build_steps(1000, loss=loss)))


def test_losses_that_are_no_longer_numbers_are_told_with_their_first_step() -> None:
    loss = np.full(200, 4.0)
    loss[150:] = np.nan
    assert "from step 151 on" in divergence(build_series(steps=build_steps(200, loss=loss)))


def test_losses_that_were_never_measured_are_no_divergence() -> None:
    loss = np.full(200, np.nan)
    loss[:100:20] = 4.0
    assert not divergence(build_series(steps=build_steps(200, loss=loss)))


def test_steps_that_are_all_skipped_at_the_end_are_told() -> None:
    skipped = np.arange(200) >= 100
    assert "from step 101 on" in divergence(build_series(steps=build_steps(200, skipped=skipped)))


def test_an_explosion_of_the_training_loss_is_told() -> None:
    loss = np.concatenate([np.linspace(10, 3, 150), np.linspace(3, 8, 50)])
    assert "rose from 3." in divergence(build_series(steps=build_steps(200, loss=loss)))


def test_a_valid_loss_that_is_no_number_at_the_end_is_told() -> None:
    evaluations = build_evaluations([100, 200], [3.0, math.nan], probe=[3.0, math.nan])
    assert "at step 200" in divergence(build_series(evaluations=evaluations))


def test_a_model_that_knows_frequent_pieces_only_is_stuck() -> None:
    stuck = build_series(
        steps=build_steps(500, loss=np.linspace(10.4, 7.0, 500)),
        evaluations=build_evaluations([100, 200, 300, 400, 500], [7.1, 7.0, 7.0, 7.0, 7.0]),
    )
    assert is_stuck(stuck)
    fine = build_evaluations([100, 500], [7.0, 1.6])
    assert not is_stuck(build_series(steps=stuck.steps, evaluations=fine))
    assert not is_stuck(
        build_series(steps=stuck.steps, evaluations=build_evaluations([500], [7.0], bleu=[20.0]))
    )


def test_bleu_of_very_few_sentences_says_nothing() -> None:
    few, enough, unknown = (
        bleu_curve(
            build_series(
                evaluations=build_evaluations([100, 200], [3.0, 2.5], bleu=[10.0, 20.0], sentences=sentences)
            )
        )
        for sentences in (29, 30, 0)
    )
    assert len(few) == 0
    assert enough.value.tolist() == unknown.value.tolist() == [10.0, 20.0]
