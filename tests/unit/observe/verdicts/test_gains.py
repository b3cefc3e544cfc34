import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import build_evaluations, build_series, build_start

from tandem.observe.learning import bleu_curve, valid_curve
from tandem.observe.outlook import read_outlook
from tandem.observe.verdicts.gains import bleu_gains, gain_evidence, loss_gains, relative_gain, weigh_together

STEPS = list(range(50, 1001, 50))
SHARE = np.array(STEPS) / 1000
SERIES = build_series(
    evaluations=build_evaluations(
        STEPS, (1.0 + SHARE**-0.5).tolist(), bleu=(30 - 8 * SHARE**-0.5).tolist(), half=0.3
    ),
    starts=((5.0, build_start(max_steps=4000)),),
)


def test_a_gain_of_bleu_is_told_the_right_way_up() -> None:
    near, far = bleu_gains(bleu_curve(SERIES), read_outlook(SERIES))
    assert near.estimate.value == pytest.approx(8 * (1 - 1.5**-0.5), rel=0.1)
    assert far.estimate.value > near.estimate.value


def test_a_gain_is_said_as_a_share_of_the_loss() -> None:
    near, _ = loss_gains(valid_curve(SERIES), read_outlook(SERIES))
    assert relative_gain(near)[0] in "89"
    assert "between" in relative_gain(near)


def test_both_curves_and_what_the_plan_still_promises_are_evidence() -> None:
    found = {
        each.name: each
        for each in gain_evidence(SERIES, read_outlook(SERIES), valid_curve(SERIES), bleu_curve(SERIES))
    }
    planned = found["expected gain in loss on the valid text from the steps still planned"]
    again = found["expected gain in loss on the valid text from as many steps again"]
    assert isinstance(planned.value, float)
    assert isinstance(again.value, float)
    assert planned.value > again.value
    assert "slope of BLEU" in found
    assert found["step with the highest BLEU"].value == 1000


def test_too_few_points_have_no_slope_but_a_best_step() -> None:
    short = build_series(evaluations=build_evaluations([100, 200], [3.0, 2.5]))
    (best,) = gain_evidence(short, read_outlook(short), valid_curve(short), bleu_curve(short))
    assert best.value == 200


def test_loss_and_bleu_that_agree_bear_each_other_out_and_such_that_do_not_raise_doubts() -> None:
    assert weigh_together(0.8, 0.8).both > 0.8
    assert weigh_together(0.1, 0.1).neither > 0.9
    doubtful, sure = weigh_together(0.05, 0.9), weigh_together(0.001, 0.999)
    assert doubtful.bleu_alone < 0.7
    assert sure.bleu_alone > 0.95


def test_without_bleu_the_loss_speaks_alone() -> None:
    together = weigh_together(0.3, None)
    assert (together.both, together.neither, together.bleu_alone) == (0.3, 0.7, 0.0)
