"""The update plan: which pairs make update n of an epoch, the same for any number of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.epoch import POOL_PAIRS, Epoch, build_epoch
from tandem.data.batches.pool import Pool, build_pool
from tandem.data.shards.ragged import build_spans
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError

__all__ = ["Cursor", "Update", "UpdatePlan"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cursor:
    """A place in the data, whatever the number of ranks: the update to come, counted inside its epoch."""

    epoch: int = 0
    update: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """The pairs of one update, granule after granule; tokens count one end mark a sentence."""

    cursor: Cursor
    pairs: NDArray[np.int64]
    source_tokens: NDArray[np.int32]
    target_tokens: NDArray[np.int32]
    granules: NDArray[np.int64]
    """Bounds: granule g is pairs granules[g] to granules[g + 1]."""


class UpdatePlan:
    """All updates of `target_tokens` over all ranks; any of them is found from block sums and one pool."""

    def __init__(
        self,
        shards: ShardSet,
        *,
        target_tokens: int,
        seed: int,
        weights: Sequence[float] = (),
        pool_pairs: int = POOL_PAIRS,
    ) -> None:
        """Weights say how often an epoch reads each corpus: 0.5 is half of it, 2 all of it twice; none means once."""
        if target_tokens < 1:
            raise TandemError(f"batch.target_tokens is {target_tokens}: give at least 1.")
        self._weights = _checked(shards, tuple(weights) or (1.0,) * len(shards.corpora))
        self.shards = shards
        self.target_tokens = target_tokens
        self.seed = seed
        self._pool_pairs = pool_pairs
        self._epoch = lru_cache(maxsize=2)(self._build_epoch)
        self._pool = lru_cache(maxsize=1)(self._build_pool)

    def updates(self, epoch: int) -> int:
        """Number of updates in an epoch; epochs differ a little where a weight is not whole."""
        return int(self._epoch(epoch).first_update[-1])

    def update(self, cursor: Cursor) -> Update:
        """The update at a place; raises IndexError past the epoch's end."""
        epoch = self._epoch(cursor.epoch)
        if not 0 <= cursor.update < epoch.first_update[-1]:
            raise IndexError(
                f"epoch {cursor.epoch} has {epoch.first_update[-1]} updates, not {cursor.update}"
            )
        number, update = epoch.find_pool(cursor.update)
        pool = self._pool(cursor.epoch, number)
        starts, stops = pool.cuts[pool.granules[update]], pool.cuts[pool.granules[update] + 1]
        places = build_spans(starts, stops - starts)
        return Update(
            cursor=cursor,
            pairs=pool.pairs[places],
            source_tokens=pool.source_tokens[places],
            target_tokens=pool.target_tokens[places],
            granules=np.concatenate([[0], np.cumsum(stops - starts)]),
        )

    def mean_tokens(self) -> tuple[float, float]:
        """Source and target tokens of an update, on average over the first epoch that has one."""
        epoch = self._epoch(self._start(0).epoch)
        blocks, updates = self.shards.blocks, int(epoch.first_update[-1])
        source = int(blocks.source_tokens[epoch.blocks].sum(dtype=np.int64))
        target = int(blocks.target_tokens[epoch.blocks].sum(dtype=np.int64))
        return source / updates, target / updates

    def next(self, cursor: Cursor) -> Cursor:
        """The place after this one, in the next epoch that has an update where this one ends."""
        if cursor.update + 1 < self.updates(cursor.epoch):
            return Cursor(epoch=cursor.epoch, update=cursor.update + 1)
        return self._start(cursor.epoch + 1)

    def cursor(self, step: int) -> Cursor:
        """The place of the update that `step` updates come before; costs block sums of each epoch passed."""
        place = self._start(0)
        while step >= self.updates(place.epoch):
            step -= self.updates(place.epoch)
            place = self._start(place.epoch + 1)
        return Cursor(epoch=place.epoch, update=step)

    def _start(self, epoch: int) -> Cursor:
        # A weight under 1 can leave a tiny set without a block in some epoch.
        while not self.updates(epoch):
            epoch += 1
        return Cursor(epoch=epoch)

    def _build_epoch(self, epoch: int) -> Epoch:
        return build_epoch(
            self.shards.blocks,
            self._weights,
            seed=self.seed,
            epoch=epoch,
            target_tokens=self.target_tokens,
            pool_pairs=self._pool_pairs,
        )

    def _build_pool(self, number: int, pool: int) -> Pool:
        epoch = self._epoch(number)
        chosen = epoch.blocks[epoch.first_block[pool] : epoch.first_block[pool + 1]]
        source, target = self.shards.lengths(chosen)
        first_pair = self.shards.blocks.first_pair
        return build_pool(
            build_spans(first_pair[chosen], np.diff(first_pair)[chosen]),
            source_tokens=source.astype(np.int32) + 1,
            target_tokens=target.astype(np.int32) + 1,
            updates=int(np.diff(epoch.first_update)[pool]),
            key=(self.seed, number, pool),
        )


def _checked(shards: ShardSet, weights: tuple[float, ...]) -> tuple[float, ...]:
    for name, weight in zip(shards.corpora, weights, strict=True):
        if not isfinite(weight) or weight < 0:
            raise TandemError(f"Corpus {name} has the weight {weight}: give it 0 or more.")
    if not any(weights[number] for number in np.unique(shards.blocks.corpus)):
        raise TandemError(f"{shards.folder} has no pair to train on: give a corpus a weight above 0.")
    return weights
