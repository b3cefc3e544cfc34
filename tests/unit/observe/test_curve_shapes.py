import numpy as np
import pytest

from tandem.observe.curve_shapes import Clock, read_ways

STEPS = np.arange(50.0, 1001.0, 50.0)
BY_STEPS = Clock(at=STEPS, ends=(1500.0,))


def test_a_clock_in_another_unit_shows_the_same_and_adds_nothing() -> None:
    same = Clock(at=0.003 * STEPS, ends=(4.5,))
    assert same.is_like(BY_STEPS)
    assert len(read_ways(BY_STEPS, same).chance) == len(read_ways(BY_STEPS, None).chance)


def test_a_clock_that_stands_still_is_tried_beside_the_other() -> None:
    slow = Clock(at=np.minimum(STEPS, 800.0), ends=(1200.0,))
    assert not slow.is_like(BY_STEPS)
    assert len(read_ways(BY_STEPS, slow).chance) == 2 * len(read_ways(BY_STEPS, None).chance)


@pytest.mark.parametrize("points", [4, 8, 20])
def test_the_chances_of_all_ways_are_one(points: int) -> None:
    ways = read_ways(
        Clock(at=STEPS[-points:], ends=(1500.0,)), Clock(at=STEPS[-points:] ** 0.5, ends=(35.0,))
    )
    assert ways.chance.sum() == pytest.approx(1.0)
    assert ways.fall.shape == ways.turn.shape == (len(ways.chance), points + 1)


def test_a_turn_takes_points_before_and_after_it() -> None:
    assert not read_ways(Clock(at=STEPS[-3:], ends=(1500.0,)), None).turn.any()
    turned = read_ways(BY_STEPS, None).turn
    assert turned.any()
    assert (turned >= 0).all()
