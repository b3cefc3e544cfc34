"""One pass through a shard set: which blocks, in what order, and how many updates they make."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.draw import Purpose, permutation
from tandem.data.shards.index import Blocks

__all__ = ["GRANULES", "POOL_PAIRS", "Epoch", "build_epoch"]

POOL_PAIRS = 2**18
"""Enough to find pairs alike in both lengths; every rank holds one pool, and lays out the next while it trains."""
GRANULES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Epoch:
    """The blocks of an epoch in random order, cut into pools; updates are counted from block sums alone."""

    blocks: NDArray[np.int64]
    first_block: NDArray[np.int64]
    """Of each pool, in `blocks`; one more entry at the end."""
    first_update: NDArray[np.int64]
    """Of each pool; the last entry is the number of updates in the epoch."""

    def find_pool(self, update: int) -> tuple[int, int]:
        """Pool that holds an update, and the update's number in that pool."""
        pool = int(np.searchsorted(self.first_update, update, side="right")) - 1
        return pool, update - int(self.first_update[pool])


def build_epoch(
    blocks: Blocks,
    weights: Sequence[float],
    *,
    seed: int,
    epoch: int,
    target_tokens: int,
    pool_pairs: int = POOL_PAIRS,
) -> Epoch:
    """Choose, shuffle and pool the blocks of one epoch, by the weight of each corpus; touches no pair."""
    chosen = _choose(blocks, weights, seed=seed, epoch=epoch)
    chosen = chosen[permutation(len(chosen), Purpose.BLOCK_ORDER, seed, epoch)]
    pairs = blocks.pairs[chosen].astype(np.int64)
    pools = max(1, round(int(pairs.sum()) / pool_pairs)) if len(chosen) else 0
    first_block = np.arange(pools + 1) * len(chosen) // max(pools, 1)
    pool_pair_sums = _sum_stretches(pairs, first_block)
    pool_tokens = _sum_stretches(blocks.target_tokens[chosen].astype(np.int64), first_block)
    nearest = (2 * pool_tokens + target_tokens) // (2 * target_tokens)
    updates = np.maximum(np.minimum(nearest, pool_pair_sums // GRANULES), 1)
    first_update = np.concatenate([[0], np.cumsum(updates)])
    return Epoch(blocks=chosen, first_block=first_block, first_update=first_update)


def _choose(blocks: Blocks, weights: Sequence[float], *, seed: int, epoch: int) -> NDArray[np.int64]:
    """Each block as often as its corpus weighs: over the epochs evenly, in each epoch to within one block."""
    times = np.zeros(len(blocks), np.int64)
    for number, weight in enumerate(weights):
        members = np.flatnonzero(blocks.corpus == number)
        phase = np.empty(len(members))
        phase[permutation(len(members), Purpose.BLOCK_PHASE, seed, number)] = np.arange(len(members)) + 0.5
        phase /= max(len(members), 1)
        times[members] = np.floor((epoch + 1) * weight + phase) - np.floor(epoch * weight + phase)
    return np.repeat(np.arange(len(blocks)), times)


def _sum_stretches(values: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    totals = np.concatenate([[0], np.cumsum(values)])
    return np.diff(totals[bounds])
