import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.curve_story import Story
from tests.unit.observe.verdicts.series_story import build_evaluations, build_series, build_steps

from tandem.observe.verdicts.overfitting import judge

STEPS = list(range(50, 1001, 50))
SHARE = np.array(STEPS) / 1000
FALLING = 1.5 + 0.5 * SHARE**-0.5
RISING = FALLING + 2.0 * np.maximum(0, SHARE - 0.4)


def noise(
    sigma: float, seed: int = 1, *, count: int = len(STEPS)
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.random.default_rng(seed).normal(0.0, sigma, count)


def test_a_loss_at_its_lowest_point_says_no() -> None:
    valid, probe = FALLING + noise(0.004), FALLING - 0.1 + noise(0.004, 2)
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid.tolist(), probe=probe.tolist())))
    assert (finding.number, finding.key) == (3, "overfitting")
    assert (finding.verdict, finding.confidence) == ("no", "high")
    assert finding.missing == ()


@pytest.mark.parametrize(("risen", "verdict"), [(-0.02, "no"), (0.002, "no"), (0.06, "cannot tell")])
def test_a_last_evaluation_that_leaves_the_curve_upwards_is_no_low_point(risen: float, verdict: str) -> None:
    valid, probe = FALLING + noise(0.004), FALLING - 0.1 + noise(0.004, 2)
    valid[-1] = valid[:-1].min() + risen
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid.tolist(), probe=probe.tolist())))
    assert finding.verdict == verdict


def test_a_loss_that_rises_while_training_pairs_get_better_says_yes_since_when() -> None:
    valid, probe = RISING + noise(0.004), FALLING - SHARE + noise(0.004, 2)
    bleu = 25 - 4 * np.maximum(0, SHARE - 0.4) + noise(0.1, 3)
    evaluations = build_evaluations(STEPS, valid.tolist(), probe=probe.tolist(), bleu=bleu.tolist(), half=0.7)
    finding = judge(build_series(evaluations=evaluations))
    assert (finding.verdict, finding.confidence) == ("yes", "high")
    assert "step 400" in finding.answer or "step 450" in finding.answer
    (growth,) = (each for each in finding.evidence if each.name == "growth of the gap")
    assert growth.low is not None
    assert growth.low > 0


def test_without_a_probe_it_is_less_sure_and_says_what_is_missing() -> None:
    finding = judge(build_series(evaluations=build_evaluations(STEPS, RISING.tolist())))
    assert (finding.verdict, finding.confidence) == ("yes", "medium")
    assert "probe_pairs" in finding.missing[0]


def test_a_loss_that_rises_while_bleu_rises_says_partly() -> None:
    evaluations = build_evaluations(STEPS, RISING.tolist(), bleu=(20 + 6 * SHARE).tolist(), half=0.7)
    finding = judge(build_series(evaluations=evaluations))
    assert (finding.verdict, finding.confidence) == ("partly", "medium")
    assert "yet BLEU is 3." in finding.answer


def test_without_bleu_a_rise_of_the_loss_alone_is_less_sure() -> None:
    valid, probe = RISING + noise(0.004), FALLING - SHARE + noise(0.004, 2)
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid.tolist(), probe=probe.tolist())))
    assert (finding.verdict, finding.confidence) == ("yes", "medium")
    assert "BLEU" in finding.missing[0]


@pytest.mark.parametrize(("slope", "verdict"), [(0.2, "yes"), (1.2, "partly")])
def test_a_rise_of_bleu_that_drowns_in_its_noise_takes_the_confidence(slope: float, verdict: str) -> None:
    wobble = np.resize([1.0, -1.0], len(STEPS))
    bleu = 25 + slope * SHARE + wobble
    evaluations = build_evaluations(STEPS, RISING.tolist(), bleu=bleu.tolist(), half=0.7)
    finding = judge(build_series(evaluations=evaluations))
    assert (finding.verdict, finding.confidence) == (verdict, "low")


def test_a_loss_below_that_on_training_pairs_is_told_so() -> None:
    valid, probe = FALLING + noise(0.002), FALLING + 0.05 + noise(0.002, 2)
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid.tolist(), probe=probe.tolist())))
    assert "0.05 below that on training pairs" in finding.answer


def test_a_growing_gap_below_a_falling_loss_is_no_overfitting_but_told() -> None:
    valid, probe = FALLING + noise(0.002), FALLING - 0.5 * SHARE + noise(0.002, 2)
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid.tolist(), probe=probe.tolist())))
    assert finding.verdict == "no"
    assert "gap grows" in finding.answer


def test_a_run_that_came_apart_is_not_overfitting() -> None:
    loss = np.concatenate([np.linspace(10, 3, 500), np.linspace(3, 8, 500)])
    valid = np.where(SHARE < 0.5, 10 - 14 * SHARE, 3 + 10 * (SHARE - 0.5))
    series = build_series(
        steps=build_steps(1000, loss=loss), evaluations=build_evaluations(STEPS, valid.tolist())
    )
    finding = judge(series)
    assert finding.verdict == "no"
    assert "came apart" in finding.answer


def test_a_rise_of_training_pairs_as_well_is_not_called_overfitting() -> None:
    probe = RISING - 0.1
    finding = judge(build_series(evaluations=build_evaluations(STEPS, RISING.tolist(), probe=probe.tolist())))
    assert (finding.verdict, finding.confidence) == ("no", "high")
    assert "rose as well" in finding.answer


@pytest.mark.parametrize("seed", range(8))
def test_noise_of_a_small_set_is_not_taken_for_overfitting(seed: int) -> None:
    valid = 1.5 + 0.02 * SHARE**-0.5 + noise(0.05, seed)
    finding = judge(build_series(evaluations=build_evaluations(STEPS, valid.tolist(), valid_tokens=2_000)))
    assert finding.verdict != "yes" or finding.confidence == "low"


@pytest.mark.parametrize("valid", [[], [3.0], [3.0, 2.0], [math.nan, math.nan, math.nan, 3.0]])
def test_with_fewer_than_three_evaluations_it_cannot_tell(valid: list[float]) -> None:
    steps = STEPS[: len(valid)]
    finding = judge(build_series(evaluations=build_evaluations(steps, valid, duration_s=math.nan)))
    assert (finding.verdict, finding.confidence) == ("cannot tell", "none")
    assert "at least 3" in finding.missing[0]


def test_few_evaluations_far_apart_are_enough_for_a_steep_rise() -> None:
    evaluations = build_evaluations(STEPS[:5], [5.0, 4.2, 4.5, 5.0, 5.6])
    assert judge(build_series(evaluations=evaluations)).verdict == "yes"


def test_noise_that_would_hide_a_rise_at_the_end_takes_the_highest_confidence() -> None:
    for sigma, confidences in ((0.002, {"high"}), (0.05, {"medium", "low"})):
        valid, probe = FALLING + noise(sigma, 6), FALLING - 0.1 + noise(sigma, 7)
        evaluations = build_evaluations(STEPS, valid.tolist(), probe=probe.tolist())
        finding = judge(build_series(evaluations=evaluations))
        assert finding.verdict == "no"
        assert finding.confidence in confidences


@pytest.mark.parametrize("kind", ["constant", "linear"])
@pytest.mark.parametrize("back", [2, 3, 5, 8])
@pytest.mark.parametrize("noise", [0.001, 0.002])
def test_a_rise_is_never_denied_with_confidence_however_late_it_began(
    kind: str, back: int, noise: float
) -> None:
    for seed, every in itertools.product(range(2), (20, 50)):
        story = Story(kind=kind, every=every, height=1.0, noise=noise, seed=seed)
        series = story.series()
        at = np.array([each.step for each in series.evaluations], np.float64)
        ramp = np.maximum(0.0, at - at[-1 - back]) / (at[-1] - at[-1 - back])
        loss = story.loss(at)
        height = next(add for add in np.arange(0.0, 2.0, 0.005) if _rise(loss + add * ramp) >= 0.02)
        risen = zip(series.evaluations, height * ramp, strict=True)
        evaluations = tuple(replace(each, valid_loss=each.valid_loss + float(more)) for each, more in risen)

        found = judge(replace(series, evaluations=evaluations))

        assert found.verdict != "no" or found.confidence == "low"


def test_a_loss_that_flattens_with_its_rate_hides_no_rise_at_the_end() -> None:
    """A fall to zero: by its steps alone the curve would look bent from its beginning on."""
    story = Story(kind="linear", every=20, height=3.0, noise=0.001)
    series = story.series()
    at = np.array([each.step for each in series.evaluations], np.float64)
    sums = 1 - (1 - at / 1000) ** 2
    valid = 2.0 + 0.4 * sums**-0.5 + noise(0.002, count=len(at))
    valid += 0.07 * np.maximum(0.0, at - 920) / 80
    evaluations = tuple(
        replace(each, valid_loss=float(loss)) for each, loss in zip(series.evaluations, valid, strict=True)
    )

    assert judge(replace(series, evaluations=evaluations)).verdict == "yes"


def _rise(loss: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(loss[-1] / loss.min() - 1)
