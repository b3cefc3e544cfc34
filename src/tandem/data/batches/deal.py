"""An update dealt to ranks so that each has equal work, in like shapes, at the same time."""

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.plan import Update

__all__ = ["HOLE", "Deal", "deal"]

HOLE = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deal:
    """Rows of like pairs, one for each rank: any cut between rows gives all ranks like batches."""

    update: Update
    rows: NDArray[np.int64]
    """[rows, ranks]: a pair's place in the update, or HOLE where a rank gets none."""
    granules: NDArray[np.int64]
    """Bounds in rows."""

    @property
    def ranks(self) -> int:
        """Number of ranks that share the update."""
        return int(self.rows.shape[1])

    def rank(self, rank: int, rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Places in the update of the pairs that a rank gets, in these rows or in all."""
        column: NDArray[np.int64] = self.rows[slice(None) if rows is None else rows, rank]
        places: NDArray[np.int64] = column[column != HOLE]
        return places

    def tokens(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[rows, ranks]: source and target tokens, 0 in a hole."""
        sides = (self.update.source_tokens, self.update.target_tokens)
        source, target = (np.append(side, 0).astype(np.int64)[self.rows] for side in sides)
        return source, target


def deal(update: Update, ranks: int) -> Deal:
    """Deal an update; every rank computes the same deal, so that none has to ask another."""
    if ranks == 1:
        return Deal(update=update, rows=np.arange(len(update.pairs))[:, None], granules=update.granules)
    work = (update.source_tokens + update.target_tokens).astype(np.int64)
    bounds = update.granules.tolist()
    load = np.zeros(ranks, np.int64)
    grids: list[NDArray[np.int64]] = []
    for start, stop in pairwise(bounds):
        # The longest sentences differ most: they are all left over, to be weighed one by one.
        whole = (stop - start) // ranks * ranks if stop < bounds[-1] else 0
        grid = np.arange(start, start + whole).reshape(-1, ranks)
        grid[1::2] = grid[1::2, ::-1]
        hands = work[grid].sum(axis=0)
        heaviest, least = np.argsort(-hands, kind="stable"), np.argsort(load, kind="stable")
        dealt = np.empty_like(grid)
        dealt[:, least] = grid[:, heaviest]
        load[least] += hands[heaviest]
        grids.append(dealt)
    grids = _deal_rest(grids, bounds, work=work, load=load)
    return Deal(
        update=update,
        rows=np.concatenate(grids),
        granules=np.concatenate([[0], np.cumsum([len(grid) for grid in grids])]),
    )


def _deal_rest(
    grids: list[NDArray[np.int64]], bounds: list[int], *, work: NDArray[np.int64], load: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Give the pairs left over, heaviest first, to the least loaded ranks, in rows after the grid's."""
    rest = [
        (place, number)
        for number, (grid, (start, stop)) in enumerate(zip(grids, pairwise(bounds), strict=True))
        for place in range(start + grid.size, stop)
    ]
    rest.sort(key=lambda item: -int(work[item[0]]))
    loads = [(int(tokens), rank) for rank, tokens in enumerate(load)]
    heapq.heapify(loads)
    given: list[list[list[int]]] = [[[] for _ in loads] for _ in grids]
    for place, number in rest:
        tokens, rank = loads[0]
        given[number][rank].append(place)
        heapq.heapreplace(loads, (tokens + int(work[place]), rank))
    return [np.concatenate([grid, _fill(hands)]) for grid, hands in zip(grids, given, strict=True)]


def _fill(hands: list[list[int]]) -> NDArray[np.int64]:
    rows = np.full((max(map(len, hands)), len(hands)), HOLE, np.int64)
    for rank, places in enumerate(hands):
        rows[: len(places), rank] = places
    return rows
