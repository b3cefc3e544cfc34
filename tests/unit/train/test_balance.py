from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.data.batches.uneven import EQUAL
from tandem.train.balance import (
    LARGEST_CHANGE,
    LEAST_SHARE,
    RankTimes,
    best_shares,
    choose_shares,
    step_seconds,
)

TIMES = st.lists(
    st.builds(RankTimes, fixed_s=st.floats(0, 1), whole_s=st.floats(0.01, 100)), min_size=2, max_size=16
)


def ranks(*whole_s: float, fixed_s: float = 0.0) -> tuple[RankTimes, ...]:
    return tuple(RankTimes(fixed_s=fixed_s, whole_s=each) for each in whole_s)


@given(TIMES)
def test_best_shares_are_parts_of_one_update_and_none_is_too_small(times: list[RankTimes]) -> None:
    shares = best_shares(times)
    assert fsum(shares) == pytest.approx(1)
    assert min(shares) >= LEAST_SHARE / len(times) * (1 - 1e-9)


@given(TIMES, st.lists(st.floats(0.01, 1), min_size=16, max_size=16))
def test_no_other_shares_end_sooner(times: list[RankTimes], drawn: list[float]) -> None:
    least = LEAST_SHARE / len(times)
    total = fsum(drawn[: len(times)])
    other = [least + (1 - LEAST_SHARE) * share / total for share in drawn[: len(times)]]
    assert step_seconds(times, best_shares(times)) <= step_seconds(times, other) * (1 + 1e-9)


def test_all_finish_together_and_as_fast_as_their_speeds_together() -> None:
    times = ranks(1.0, 3.0)
    assert best_shares(times) == pytest.approx((0.75, 0.25))
    assert step_seconds(times, best_shares(times)) == pytest.approx(1 / (1 / 1.0 + 1 / 3.0))


def test_time_that_no_share_changes_is_reckoned_with() -> None:
    times = (RankTimes(fixed_s=0.1, whole_s=1.0), RankTimes(fixed_s=0.4, whole_s=1.0))
    assert best_shares(times) == pytest.approx((0.65, 0.35))


def test_a_large_change_is_seen_in_two_windows_and_a_small_one_in_eight() -> None:
    large, small = ranks(1.0, 2.0), ranks(1.0, 1.08)
    assert choose_shares([large], EQUAL) is None
    assert choose_shares([large] * 2, EQUAL) is not None
    assert choose_shares([small] * 5, EQUAL) is None
    choice = choose_shares([small] * 8, EQUAL)
    assert choice is not None
    assert choice.windows > 5


def test_even_ranks_keep_no_shares_at_all() -> None:
    assert choose_shares([ranks(1.0, 1.02, 0.99, 1.0)] * 8, EQUAL) is None
    # And ranks that have become even get rid of theirs.
    choice = choose_shares([ranks(1.0, 1.02)] * 8, (0.4, 0.6))
    assert choice is not None
    assert choice.shares == EQUAL


@given(TIMES)
def test_no_share_changes_by_more_than_a_factor(times: list[RankTimes]) -> None:
    choice = choose_shares([times] * 8, EQUAL)
    if choice is None or not choice.shares:
        return
    changes = [share * len(times) for share in choice.shares]
    assert min(changes) >= 1 / LARGEST_CHANGE - 1e-4
    assert max(changes) <= LARGEST_CHANGE + 1e-4
