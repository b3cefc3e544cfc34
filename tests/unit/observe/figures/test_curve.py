"""Numbers of figures are those that formatting gives, written in as few digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.observe.figures.curve import values

Numbers = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=20)


@given(numbers=Numbers, digits=st.sampled_from([5, 7]))
def test_numbers_are_rounded_as_by_formatting(numbers: list[float], digits: int) -> None:
    found = values(np.array(numbers, np.float64), digits)
    for number, told in zip(numbers, found, strict=True):
        assert isinstance(told, float)
        formatted = float(f"{number:.{digits}g}")
        # A number in the middle between two may go either way.
        assert told == pytest.approx(formatted, rel=1.01 * 10 ** (1 - digits), abs=0)
        assert told == float(f"{told:.{digits}g}")


def test_what_is_no_number_leaves_a_gap() -> None:
    assert values(np.array([1.0, np.nan, np.inf, -np.inf, 0.0])) == [1.0, None, None, None, 0.0]


@pytest.mark.parametrize(
    ("number", "told"),
    [(0.123456, 0.12346), (299_999.6, 300_000.0), (1e-7, 1e-7), (123_456_789.0, 123_460_000.0)],
)
def test_digits_that_do_not_count_are_gone(number: float, told: float) -> None:
    assert values(np.array([number])) == [told]


def test_whole_numbers_of_steps_are_numbers_too() -> None:
    assert values(np.array([1, 300_000]), 7) == [1.0, 300_000.0]
