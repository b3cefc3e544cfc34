import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.observe.watch.curve import LIMIT, StepCurve


def test_a_short_curve_is_kept_as_it_is() -> None:
    curve = StepCurve()
    for step, loss in enumerate([5.0, 4.0, 3.0], start=1):
        curve.add(step, loss, weight=10)
    assert curve.values(80) == [5.0, 4.0, 3.0]


def test_columns_are_means_weighted_by_tokens() -> None:
    curve = StepCurve()
    curve.add(1, 4.0, weight=3)
    curve.add(2, 8.0, weight=1)
    assert curve.values(1) == [5.0]


def test_three_hundred_thousand_steps_keep_their_shape_in_a_few_points() -> None:
    curve = StepCurve()
    for step in range(1, 300_001):
        curve.add(step, step / 1000, weight=1)
    values = curve.values(10_000)
    assert len(values) <= LIMIT
    assert values == sorted(values)
    assert curve.values(3) == pytest.approx([50, 150, 250], rel=0.02)


def test_what_came_after_a_step_is_forgotten() -> None:
    curve = StepCurve()
    for step in range(1, 11):
        curve.add(step, float(step), weight=1)
    curve.cut(4)
    curve.add(5, 50.0, weight=1)
    assert curve.values(80) == [1.0, 2.0, 3.0, 4.0, 50.0]


def test_a_gap_in_the_steps_is_bridged() -> None:
    curve = StepCurve()
    for step in (1, 2, 1000):
        curve.add(step, float(step), weight=1)
    assert curve.values(3) == [1.5, 1000.0]


def test_nothing_has_no_values() -> None:
    assert StepCurve().values(10) == []


@given(
    gaps=st.lists(st.integers(1, 40) | st.just(1), min_size=1, max_size=40),
    repeats=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 2_000), max_size=3),
)
def test_many_steps_at_once_are_what_one_by_one_they_are(
    gaps: list[int], repeats: int, cuts: list[int]
) -> None:
    steps = np.cumsum(np.array(gaps * repeats, np.int64))
    values = np.sin(steps / 7.0)
    single, whole = StepCurve(), StepCurve()
    for step, value in zip(steps.tolist(), values.tolist(), strict=True):
        single.add(step, value, weight=step % 3 + 1)
    for part in np.split(np.arange(len(steps)), sorted(cuts)):
        whole.extend(steps[part], values[part], weights=steps[part] % 3 + 1)
    assert whole.values(10_000) == pytest.approx(single.values(10_000))


def test_a_value_that_is_not_finite_has_no_place() -> None:
    curve = StepCurve()
    curve.add(1, math.nan, weight=1)
    curve.extend(np.array([2, 3]), np.array([math.inf, 4.0]), weights=np.array([1, 1]))
    assert curve.values(10) == [4.0]
