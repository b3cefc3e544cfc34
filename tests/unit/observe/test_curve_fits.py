import numpy as np
import pytest

from tandem.observe.curve_fits import Decay, chance_of_decay, expect_gains, rise_by_turns
from tandem.observe.curve_shapes import Clock

STEPS = np.arange(50.0, 1001.0, 50.0)


def test_expected_gains_hold_the_truth_and_grow_with_the_horizon() -> None:
    random = np.random.default_rng(5)
    x = np.linspace(25.0, 100.0, 20)

    def curve(
        at: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return 1.5 + 4 * at**-0.6

    held = 0
    for _ in range(60):
        near, far = expect_gains(x, curve(x) + random.normal(0, 0.01, 20), ends=(150.0, 200.0), floor=0.002)
        truth = float(curve(np.array([100.0]))[0] - curve(np.array([150.0]))[0])
        held += near.estimate.low <= truth <= near.estimate.high
        assert far.estimate.value > near.estimate.value
    assert held >= 52


def test_a_gain_cannot_take_a_curve_below_its_least_value() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    (gain,) = expect_gains(x, np.array([4.0, 3.0, 2.0, 1.0]), ends=(40.0,), floor=0.01, least=0.0)
    assert gain.estimate.high <= gain.level + 1e-12
    assert gain.chance_above(gain.level) == 0


def test_values_that_never_change_promise_no_gain() -> None:
    steps = np.array([15.0, 30.0, 45.0, 60.0])
    (gain,) = expect_gains(steps, np.zeros(4), ends=(90.0,), floor=0.0)
    assert gain.estimate.value == pytest.approx(0.0, abs=1e-6)


def test_a_fall_that_may_have_broken_off_promises_less_for_sure() -> None:
    x = np.linspace(30.0, 100.0, 8)
    (whole,) = expect_gains(x, 1 + 8 * x**-0.5, ends=(150.0,), floor=0.001)
    (broken,) = expect_gains(x, 1 + 8 * np.minimum(x, 80.0) ** -0.5, ends=(150.0,), floor=0.001)
    assert whole.chance_above(0.05) > 0.9
    assert broken.chance_above(0.05) < 0.1


def cooled(
    step: np.ndarray[tuple[int], np.dtype[np.float64]], *, brings: float
) -> tuple[list[float], list[float]]:
    """The rate's share, which falls over the last fifth, and a settled loss that falls with it."""
    share = np.clip((1001 - step) / 200, 0.0, 1.0)
    return share.tolist(), (2.0 * (1 + brings * share)).tolist()


@pytest.mark.parametrize("brings", [0.02, 0.04, 0.07])
def test_what_a_falling_rate_brought_is_not_expected_to_go_on(brings: float) -> None:
    share, loss = cooled(STEPS, brings=brings)
    decay = Decay(shares=np.array(share), scale=2.0)
    (gain,) = expect_gains(STEPS, np.array(loss), ends=(1500.0,), floor=0.002, decay=decay)
    (naive,) = expect_gains(STEPS, np.array(loss), ends=(1500.0,), floor=0.002)
    assert gain.chance_above(0.02) < 0.05
    assert naive.chance_above(0.02) >= gain.chance_above(0.02)


def test_what_a_rate_is_still_to_bring_is_added_and_told_apart() -> None:
    decay = Decay(begin=1.0, end=0.0, scale=2.0)
    (gain,) = expect_gains(STEPS, np.full(20, 2.0), ends=(1500.0,), floor=0.002, decay=decay)
    assert gain.chance_above(0.02) >= 0.9
    assert gain.chance_by_steps(0.02) < 0.05
    assert 0.04 < gain.estimate.value < 0.14


def test_a_smaller_part_of_a_fall_brings_less() -> None:
    chances = [chance_of_decay(fall, 0.01) for fall in (0.0, 0.1, 0.3, 0.6, 1.0)]
    assert chances == sorted(chances)
    assert chances[0] == 0.0
    assert chances[-1] > 0.9


@pytest.mark.parametrize("rise", [0.0, 0.1, 0.3])
def test_a_turn_is_found_with_how_far_it_rose(rise: float) -> None:
    random = np.random.default_rng(5)
    loss = 2.0 + (STEPS / 1000) ** -0.5 * 0.2 + rise * np.maximum(0.0, STEPS - 500) / 500
    truth = float(loss[-1] - loss.min())
    turned = rise_by_turns(STEPS, loss + random.normal(0.0, 0.004, 20), floor=0.004)
    low, high = np.quantile(turned.spread, (0.01, 0.99))
    assert low - 0.005 <= truth <= high + 0.005
    assert high - low < 0.06


def test_a_curve_that_stands_still_with_its_rate_is_not_taken_for_learnt_out() -> None:
    """A cosine to zero: the sum of the rates stops, and a longer plan goes on with it."""
    sums = STEPS + 1000 / np.pi * np.sin(np.pi * STEPS / 1000)
    loss = 1.5 + 1.5 * (sums / sums[-1]) ** -0.5
    by_rates = Clock(at=sums, ends=(1.25 * float(sums[-1]),))
    truth = 1.5 * (1 - 1.25**-0.5)
    (told,) = expect_gains(STEPS, loss, ends=(1500.0,), floor=0.002, by_rates=by_rates)
    assert told.chance_above(truth / 2) > 0.9
    assert told.estimate.low <= truth * 1.02
    assert told.estimate.high >= truth * 0.98


def test_only_a_rise_that_was_seen_is_continued() -> None:
    """A fall that slows down may look like one that is about to turn."""
    slowing = 3.0 - 2.0 * (STEPS / 1000) + 0.9 * (STEPS / 1000) ** 2
    (bend,) = expect_gains(STEPS, slowing, ends=(1500.0,), floor=0.002)
    assert bend.chance_above(-0.05) > 0.95
    turned = 2.0 + 0.2 * (STEPS / 1000) ** -0.5 + 1.5 * np.maximum(0.0, STEPS - 700) / 1000
    (rise,) = expect_gains(STEPS, turned, ends=(1500.0,), floor=0.002)
    assert rise.chance_above(0.0) < 0.05
    assert rise.estimate.value < -0.1


@pytest.mark.parametrize(("noise", "is_hidden"), [(0.001, False), (0.05, True)])
def test_noise_hides_a_rise_that_began_with_the_last_points(noise: float, is_hidden: bool) -> None:
    loss = 2.0 + 0.02 * (STEPS / 1000) ** -0.5 + noise * np.tile([-1.0, 1.0], 10)
    turned = rise_by_turns(STEPS, loss, floor=noise)
    assert (turned.chance_hidden(0.02) > 0.2) == is_hidden
    assert turned.chance_hidden(5.0) < 0.01


def test_with_too_few_points_for_a_turn_any_rise_is_hidden() -> None:
    turned = rise_by_turns(np.array([990.0, 1000.0]), np.array([3.0, 2.0]), floor=0.01)
    assert turned.chance_hidden(0.1) == 1.0


def test_a_curve_that_fits_without_any_error_is_not_known_to_go_on_so() -> None:
    (gain,) = expect_gains(STEPS, 1.0 + (STEPS / 1000) ** -0.5, ends=(1500.0,), floor=1e-6)
    truth = 1 - 1.5**-0.5
    assert gain.estimate.low < 0.75 * truth
    assert gain.estimate.high > 1.25 * truth


@pytest.mark.parametrize("seed", [1, 6, 7])
def test_what_a_rate_may_have_brought_is_no_sign_of_a_rise(seed: int) -> None:
    """A loss that is lowest at its end, after a cool-down that it took no notice of."""
    every, step = np.arange(1.0, 264.0), np.append(np.arange(65.0, 261.0, 5.0), 263.0)
    cooled = np.clip((264 - every) / 43, 0.0, 1.0)
    at = np.cumsum(np.minimum(every / 57, np.sqrt(57 / every)) * cooled)[step.astype(int) - 1]
    loss = 2.2 + 8.3 * np.exp(-((at / 29.2) ** 0.79))
    loss += np.random.default_rng(seed).normal(0.0, 0.006, len(step))
    loss[-1] = loss.min() - 0.003
    decay = Decay(shares=cooled[step.astype(int) - 1], scale=float(loss[-1]))
    by_rates = Clock(at=at, ends=(float(at[-1]) + 65.0,))

    (gain,) = expect_gains(step, loss, ends=(395.0,), floor=0.014, decay=decay, by_rates=by_rates)

    assert gain.chance_above(0.0) > 0.99
