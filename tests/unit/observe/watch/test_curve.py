import pytest

from tandem.observe.watch.curve import LIMIT, LossCurve


def test_a_short_curve_is_kept_as_it_is() -> None:
    curve = LossCurve()
    for step, loss in enumerate([5.0, 4.0, 3.0], start=1):
        curve.add(step, loss, weight=10)
    assert curve.values(80) == [5.0, 4.0, 3.0]


def test_columns_are_means_weighted_by_tokens() -> None:
    curve = LossCurve()
    curve.add(1, 4.0, weight=3)
    curve.add(2, 8.0, weight=1)
    assert curve.values(1) == [5.0]


def test_three_hundred_thousand_steps_keep_their_shape_in_a_few_points() -> None:
    curve = LossCurve()
    for step in range(1, 300_001):
        curve.add(step, step / 1000, weight=1)
    values = curve.values(10_000)
    assert len(values) <= LIMIT
    assert values == sorted(values)
    assert curve.values(3) == pytest.approx([50, 150, 250], rel=0.02)


def test_what_came_after_a_step_is_forgotten() -> None:
    curve = LossCurve()
    for step in range(1, 11):
        curve.add(step, float(step), weight=1)
    curve.cut(4)
    curve.add(5, 50.0, weight=1)
    assert curve.values(80) == [1.0, 2.0, 3.0, 4.0, 50.0]


def test_a_gap_in_the_steps_is_bridged() -> None:
    curve = LossCurve()
    for step in (1, 2, 1000):
        curve.add(step, float(step), weight=1)
    assert curve.values(3) == [1.5, 1000.0]


def test_nothing_has_no_values() -> None:
    assert LossCurve().values(10) == []
