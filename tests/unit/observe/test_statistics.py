import numpy as np
import pytest

from tandem.observe.statistics import (
    Rise,
    block_means,
    change_of,
    measure_rise,
    median_with_interval,
    noise_of,
    ratio_by_blocks,
    slope_of,
)


def test_block_means_keep_the_mean_and_leave_out_what_is_not_finite() -> None:
    x, y = block_means(np.arange(6.0), np.array([1.0, 3.0, np.nan, 5.0, 7.0, np.inf]), blocks=2)
    assert y.tolist() == [2.0, 6.0]
    assert x.tolist() == [0.5, 3.5]


def test_block_means_of_nothing_are_nothing() -> None:
    x, y = block_means(np.zeros(0), np.zeros(0), blocks=5)
    assert len(x) == len(y) == 0


def test_the_interval_of_a_median_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        found = median_with_interval(random.exponential(1.0, 60))
        held += found.low <= np.log(2) <= found.high
    assert 180 <= held <= 200


def test_the_interval_of_a_slope_holds_the_truth_also_with_noise_that_is_alike() -> None:
    random = np.random.default_rng(2)
    x = np.arange(80.0)
    held = 0
    for _ in range(200):
        noise = random.normal(0.0, 1.0, 80)
        for place in range(1, 80):
            noise[place] += 0.6 * noise[place - 1]
        found = slope_of(x, 0.1 * x + noise)
        held += found.low <= 0.1 <= found.high
    assert held >= 175


def test_two_points_have_no_slope_that_can_be_trusted() -> None:
    found = slope_of(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    assert np.isinf(found.low)
    assert np.isinf(found.high)


def test_noise_is_seen_through_a_trend() -> None:
    random = np.random.default_rng(3)
    x = np.linspace(0.1, 1.0, 400)
    assert noise_of(2 + x**-0.5 + random.normal(0.0, 0.02, 400)) == pytest.approx(0.02, rel=0.2)


def test_a_curve_that_only_falls_has_not_risen() -> None:
    rise = measure_rise(np.array([5.0, 4.0, 3.0, 2.5, 2.2, 2.0]), floor=0.01)
    assert rise.value == 0
    assert rise.chance > 0.5
    assert rise.lowest == 5


def test_a_rise_far_above_noise_is_told_with_its_place() -> None:
    rise = measure_rise(np.array([5.0, 3.0, 2.0, 2.2, 2.5, 2.9]), floor=0.01)
    assert rise.value == pytest.approx(0.9)
    assert rise.chance < 0.001
    assert rise.lowest == 2


@pytest.mark.parametrize(("alike", "most"), [(0.0, 2), (0.6, 6)])
def test_noise_on_a_flat_curve_is_seldom_taken_for_a_rise(alike: float, most: int) -> None:
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(60):
        noise = random.normal(0.0, 0.03, 40)
        for place in range(1, 40):
            noise[place] = alike * noise[place - 1] + (1 - alike**2) ** 0.5 * noise[place]
        wrong += measure_rise(2 + noise, floor=0.001).chance < 0.01
    assert wrong <= most


def test_a_change_is_told_with_the_noise_that_is_known_even_of_two_points() -> None:
    change = change_of(np.array([0.0, 10.0]), np.array([3.0, 5.0]), noise=0.1, freedom=20)
    assert change.value == pytest.approx(2.0)
    assert change.high - change.value == pytest.approx(2.086 * 0.1 * 2**0.5, rel=0.01)


def test_points_that_scatter_more_than_their_noise_widen_a_change() -> None:
    x = np.arange(8.0)
    calm = change_of(x, 0.1 * x, noise=0.05, freedom=6)
    wild = change_of(x, 0.1 * x + np.resize([1.0, -1.0], 8), noise=0.05, freedom=6)
    assert calm.low > 0
    assert wild.low < 0 < wild.high


def test_a_ratio_is_of_sums_and_not_the_mean_of_ratios() -> None:
    found = ratio_by_blocks(np.array([10.0, 90.0]), np.array([1.0, 3.0]), blocks=2)
    assert found.value == 25.0


@pytest.mark.parametrize("alike", [0.0, 0.9])
def test_the_interval_of_a_ratio_holds_the_truth_also_where_neighbours_are_alike(alike: float) -> None:
    random = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        noise = random.normal(0.0, 0.05, 1000)
        for place in range(1, 1000):
            noise[place] += alike * noise[place - 1]
        found = ratio_by_blocks(np.full(1000, 100.0), 1.0 + noise, blocks=20)
        held += found.low <= 100.0 <= found.high
    assert held > 0.9 * 300


def test_a_steady_pace_has_a_narrow_interval() -> None:
    found = ratio_by_blocks(np.full(100, 100.0), np.full(100, 2.0), blocks=20)
    assert (found.value, found.low, found.high) == (50.0, 50.0, 50.0)


def test_bends_of_a_short_curve_are_no_noise() -> None:
    place = np.arange(1, 9) / 8
    turned = 2.0 + 0.3 / place + 0.8 * np.maximum(0.0, place - 0.5)
    assert noise_of(turned) < 0.01
    assert noise_of(turned + np.random.default_rng(6).normal(0.0, 0.1, 8)) > 0.02


def test_a_small_chance_of_noise_is_weaker_evidence_than_it_looks() -> None:
    found = [
        Rise(value=1.0, low=0.5, high=1.5, chance=chance, lowest=3).reality
        for chance in (0.5, 0.05, 0.01, 0.001)
    ]
    assert found == sorted(found)
    assert found[0] == 0.5
    assert found[2] < 0.9
    assert found[3] > 0.95
