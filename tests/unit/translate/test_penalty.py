import math

import pytest

from tandem.translate.penalty import LengthPenalty


def test_gnmt_is_one_for_a_lone_end_mark_and_grows_with_length() -> None:
    penalty = LengthPenalty(alpha=0.6)
    assert penalty.at(1) == 1.0
    assert penalty.at(19) == pytest.approx(4.0**0.6)
    assert [penalty.at(n) for n in range(1, 50)] == sorted(penalty.at(n) for n in range(1, 50))


def test_power_one_is_the_mean_and_alpha_zero_the_plain_sum() -> None:
    assert LengthPenalty(alpha=1, kind="power").at(7) == 7.0
    assert LengthPenalty(alpha=0).at(7) == LengthPenalty(alpha=0, kind="power").at(7) == 1.0


@pytest.mark.parametrize("alpha", [-0.1, math.inf, math.nan])
def test_an_alpha_that_would_not_grow_with_length_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="must be 0 or more"):
        LengthPenalty(alpha=alpha)
