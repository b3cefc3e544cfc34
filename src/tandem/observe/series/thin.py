"""Fewer points than were measured, for figures: means of neighbours, and the band that they lie in."""

import numpy as np

from tandem.observe.series.columns import Counts, Numbers, Short

__all__ = ["envelope", "thin"]


def thin(x: Numbers, y: Numbers | Short, most: int = 1500) -> tuple[Numbers, Numbers]:
    """Means of x and y over at most so many groups of neighbours; nan counts only where a group has nothing else."""
    if len(x) <= most:
        return x, y.astype(np.float64)
    starts = _starts(len(x), most)
    return _means(x, starts), _means(y, starts)


def envelope(x: Numbers, y: Numbers | Short, most: int = 1500) -> tuple[Numbers, Numbers, Numbers]:
    """Means of x with the least and the greatest y of each group; nan counts only where there is nothing else."""
    if len(x) <= most:
        return x, y.astype(np.float64), y.astype(np.float64)
    starts = _starts(len(x), most)
    low, high = (np.asarray(pick.reduceat(y, starts), np.float64) for pick in (np.fmin, np.fmax))
    return _means(x, starts), low, high


def _starts(count: int, most: int) -> Counts:
    return np.arange(most, dtype=np.int64) * count // most


def _means(values: Numbers | Short, starts: Counts) -> Numbers:
    known = ~np.isnan(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts, dtype=np.float64)
    counts = np.add.reduceat(known, starts, dtype=np.float64)
    means = np.full(len(starts), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
