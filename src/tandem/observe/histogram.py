"""Arithmetic on histograms whose buckets need not be the same on both sides."""

from itertools import accumulate

from tandem.observe.numbers import share
from tandem.runlog.card import Histogram

__all__ = ["axis_end", "bucket_starts", "share_by_length", "share_over"]

SHOWN = 0.995


def bucket_starts(histogram: Histogram) -> tuple[int, ...]:
    """The first length of each bucket."""
    return (1, *(edge + 1 for edge in histogram.edges[:-1]))[: len(histogram.edges)]


def share_by_length(histogram: Histogram) -> list[float]:
    """Share of sentences at the lengths 1, 2, …; inside a bucket, where nothing is known, it is the mean."""
    total = sum(histogram.counts)
    shares: list[float] = []
    for start, edge, counted in zip(bucket_starts(histogram), histogram.edges, histogram.counts, strict=True):
        width = edge - start + 1
        shares.extend([share(counted, total * width)] * width)
    return shares


def axis_end(*histograms: Histogram) -> int:
    """The length at which a plot may end: 99.5 % of each histogram's sentences are no longer."""
    return max(map(_end, histograms), default=1)


def share_over(histogram: Histogram, length: int) -> float:
    """Share of sentences in the buckets that begin over `length`."""
    over = sum(
        counted
        for start, counted in zip(bucket_starts(histogram), histogram.counts, strict=True)
        if start > length
    )
    return share(over, sum(histogram.counts))


def _end(histogram: Histogram) -> int:
    wanted = SHOWN * sum(histogram.counts)
    reached = zip(histogram.edges, accumulate(histogram.counts), strict=True)
    return next((edge for edge, so_far in reached if so_far >= wanted), 1)
