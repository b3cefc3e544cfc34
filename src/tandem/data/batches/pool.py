"""A pool of pairs laid out as granules: runs of pairs alike in both lengths; an update takes a few."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.draw import Purpose, permutation
from tandem.data.batches.epoch import GRANULES

__all__ = ["Pool", "build_pool"]

_MATCHING_PASSES = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Pairs in tile order, with the bounds of granules and the granules of each update."""

    pairs: NDArray[np.int64]
    source_tokens: NDArray[np.int32]
    target_tokens: NDArray[np.int32]
    cuts: NDArray[np.int64]
    """Granule g is pairs cuts[g] to cuts[g + 1]."""
    granules: NDArray[np.int64]
    """[updates, granules of an update], shorter sentences first."""


def build_pool(
    pairs: NDArray[np.int64],
    *,
    source_tokens: NDArray[np.int32],
    target_tokens: NDArray[np.int32],
    updates: int,
    key: tuple[int, ...],
) -> Pool:
    """Lay out the pairs; `key` is what the randomness depends on (seed, epoch, pool)."""
    # A random start makes every sort below break its ties at random.
    order = permutation(len(pairs), Purpose.PAIR_ORDER, *key)
    order = order[_tile(source_tokens[order], target_tokens[order], granules=updates * GRANULES)]
    source, target = source_tokens[order], target_tokens[order]
    cuts = _cut(target, updates * GRANULES)
    totals = np.concatenate([[0], np.cumsum(source, dtype=np.int64)])
    work = np.diff(totals[cuts]).reshape(GRANULES, updates)
    return Pool(
        pairs=pairs[order],
        source_tokens=source,
        target_tokens=target,
        cuts=cuts,
        granules=_match(work, permutation(updates, Purpose.UPDATE_ORDER, *key)),
    )


def _tile(source: NDArray[np.int32], target: NDArray[np.int32], *, granules: int) -> NDArray[np.int64]:
    """Order pairs by strata of target length, and to and fro by source length inside them."""
    strata = max(1, round(sqrt(granules / 2)))
    by_target = np.argsort(target, kind="stable")
    stratum = _find_middles(target[by_target]) * strata // (2 * int(target.sum(dtype=np.int64)))
    lengths = source[by_target].astype(np.int64)
    key = np.where(stratum % 2 == 0, lengths, np.iinfo(np.uint16).max + 1 - lengths)
    return by_target[np.argsort(stratum << 17 | key, kind="stable")]


def _cut(target: NDArray[np.int32], granules: int) -> NDArray[np.int64]:
    """Bounds of granules of equal target tokens, none of them empty where there are pairs enough."""
    total = int(target.sum(dtype=np.int64))
    number = np.arange(granules + 1)
    cuts = np.searchsorted(_find_middles(target), 2 * total * number // granules)
    if len(target) < granules:
        return cuts
    cuts = np.maximum.accumulate(cuts - number) + number
    return np.minimum(cuts, len(target) - granules + number)


def _find_middles(tokens: NDArray[np.int32]) -> NDArray[np.int64]:
    """Twice the place of each pair's middle in the running total: whole numbers are exact."""
    return 2 * np.cumsum(tokens, dtype=np.int64) - tokens


def _match(work: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """One granule of each length class for each update, chosen so that updates have equal source tokens."""
    classes, updates = work.shape
    chosen = np.repeat(order[:, None], classes, axis=1)
    numbers = np.arange(classes)
    for _ in range(_MATCHING_PASSES):
        for number in range(1, classes):
            others = work[numbers, chosen].sum(axis=1) - work[number, chosen[:, number]]
            chosen[np.argsort(others, kind="stable"), number] = np.argsort(-work[number], kind="stable")
    chosen += numbers * updates
    return chosen
