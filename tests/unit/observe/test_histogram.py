import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.observe.histogram import axis_end, bucket_starts, share_by_length, share_over
from tandem.runlog.card import Histogram


def test_a_bucket_is_spread_over_its_lengths() -> None:
    histogram = Histogram(edges=(2, 3), counts=(6, 2))
    assert bucket_starts(histogram) == (1, 3)
    assert share_by_length(histogram) == [0.375, 0.375, 0.25]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10**9)), min_size=1, max_size=40))
def test_the_shares_of_all_lengths_add_up_to_one(buckets: list[tuple[int, int]]) -> None:
    edges = tuple(sum(width for width, _ in buckets[: n + 1]) for n in range(len(buckets)))
    histogram = Histogram(edges=edges, counts=tuple(counted for _, counted in buckets))
    shares = share_by_length(histogram)
    assert len(shares) == edges[-1]
    assert sum(shares) == pytest.approx(1.0 if any(histogram.counts) else 0.0)


def test_the_axis_ends_where_few_sentences_are_left_on_either_side() -> None:
    short = Histogram(edges=(10, 20, 30), counts=(996, 3, 1))
    long = Histogram(edges=(8, 16, 24, 32), counts=(500, 480, 18, 2))
    assert axis_end(short) == 10
    assert axis_end(short, long) == 24
    assert share_over(short, 10) == 0.004
    assert share_over(long, 24) == 0.002


def test_an_empty_histogram_still_has_an_axis() -> None:
    assert axis_end(Histogram(edges=(), counts=())) == 1
    assert share_over(Histogram(edges=(), counts=()), 1) == 0
    assert bucket_starts(Histogram(edges=(), counts=())) == ()
