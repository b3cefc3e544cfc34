"""Updates divided by the speed of ranks: who gets which share from which step on, and the part of one rank."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.data.batches.deal import Deal, deal
from tandem.data.batches.plan import Update, UpdatePlan
from tandem.data.batches.shape import BatchShape, fit_row

__all__ = ["EQUAL", "Portions", "ShareSchedule", "Shares", "choose_owners", "take_part"]

Shares: TypeAlias = tuple[float, ...]
"""Part of an update for each rank, of any sum; none at all stands for equal parts."""

EQUAL: Shares = ()

_CHANGES = 2
"""Entries of a schedule that can still matter: the shares in force, and those announced for a later step."""
_SAMPLE = 64
_SPARE = 1.01
"""Room beyond the largest share in the sample: a row too small would double the time of a step."""


class ShareSchedule:
    """Shares by the step from which they hold; a thread that builds batches ahead may read it."""

    def __init__(self, changes: Iterable[tuple[int, Shares]] = ()) -> None:
        self._changes = tuple(changes)
        self._asked = -1

    @property
    def latest(self) -> Shares:
        """The shares announced last, in force by now or later."""
        return self._changes[-1][1] if self._changes else EQUAL

    @property
    def latest_from(self) -> int:
        """The first step that they hold for."""
        return self._changes[-1][0] if self._changes else 0

    def at(self, step: int) -> Shares:
        """Return the shares by which a step is dealt."""
        self._asked = max(self._asked, step)
        return next((shares for first, shares in reversed(self._changes) if first <= step), EQUAL)

    def change(self, shares: Shares, *, first_step: int) -> None:
        """Announce shares for a step that nobody has dealt yet, on any rank."""
        if first_step <= self._asked:
            raise ValueError(f"step {first_step} was dealt already: {self._asked} steps were asked for")
        self._changes = (*self._changes, (first_step, shares))[-_CHANGES:]

    def to_json(self) -> list[dict[str, Any]]:
        """Return it as a checkpoint keeps it."""
        return [{"first_step": first, "shares": list(shares)} for first, shares in self._changes]

    @classmethod
    def from_json(cls, entries: Iterable[Mapping[str, Any]], *, ranks: int) -> "ShareSchedule":
        """Read what `to_json` gave; equal shares if it is not of so many ranks."""
        changes = [(int(entry["first_step"]), tuple(map(float, entry["shares"]))) for entry in entries]
        is_usable = all(
            not shares or (len(shares) == ranks and all(isfinite(share) and share > 0 for share in shares))
            for _, shares in changes
        )
        return cls(changes if is_usable else ())


def choose_owners(update: Update, shares: Shares) -> NDArray[np.int64]:
    """Return the rank of each pair, so that the tokens of ranks are in proportion to their shares.

    Each pair goes to the rank that is furthest behind its share, so that all get a like mixture of lengths from every
    granule. Granules are dealt from the longest sentences down: the last pairs, which decide how far a rank ends from
    its share, are the shortest. No rank gets more than one pair too many.
    """
    work = (update.source_tokens + update.target_tokens).astype(np.int64)
    weights: list[int] = work.tolist()
    owners, tokens = [0] * len(weights), [0] * len(shares)
    behind = [(0.0, rank) for rank in range(len(shares))]
    for place in _longest_first(update.granules, work):
        rank = behind[0][1]
        owners[place] = rank
        tokens[rank] += weights[place]
        heapq.heapreplace(behind, (tokens[rank] / shares[rank], rank))
    return np.array(owners, np.int64)


def take_part(update: Update, shares: Shares, rank: int) -> Update:
    """Return what one rank gets of an update, as an update of its own."""
    places = np.flatnonzero(choose_owners(update, shares) == rank)
    return replace(
        update,
        pairs=update.pairs[places],
        source_tokens=update.source_tokens[places],
        target_tokens=update.target_tokens[places],
        granules=np.searchsorted(places, update.granules),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A rank's pairs, dealt to nobody else, and the shape that its micro-batches are cut to."""

    dealt: Deal
    shape: BatchShape


class Portions:
    """The parts of one rank, wherever shares are not equal; its own memory bounds its micro-batches."""

    def __init__(
        self,
        plan: UpdatePlan,
        schedule: ShareSchedule,
        *,
        rank: int,
        layout: Literal["padded", "packed"],
        capacity_tokens: int,
    ) -> None:
        """`capacity_tokens` are the most that a micro-batch of this rank may hold on each side."""
        self._plan, self._schedule, self._rank = plan, schedule, rank
        self._layout, self._capacity = layout, capacity_tokens
        self._shape = lru_cache(maxsize=1)(self._build_shape)

    def maybe_take(self, update: Update, *, step: int) -> _Part | None:
        """Return this rank's part of the update of a step; None if all ranks get equal parts."""
        shares = self._schedule.at(step)
        if not shares:
            return None
        part = take_part(update, shares, self._rank)
        return _Part(dealt=deal(part, 1), shape=self._shape(shares))

    def _build_shape(self, shares: Shares) -> BatchShape:
        capacity = self._capacity
        if self._layout == "padded":
            return BatchShape(layout="padded", source_tokens=capacity, target_tokens=capacity)
        first = self._plan.cursor(0)
        largest = np.zeros(2, np.int64)
        for number in range(min(self._plan.updates(first.epoch), _SAMPLE)):
            part = take_part(self._plan.update(replace(first, update=number)), shares, self._rank)
            largest = np.maximum(largest, [part.source_tokens.sum(), part.target_tokens.sum()])
        return fit_row(
            self._plan,
            most=[int(tokens) * _SPARE for tokens in largest],
            parts=sum(shares) / shares[self._rank],
            capacity_tokens=capacity,
        )


def _longest_first(granules: NDArray[np.int64], work: NDArray[np.int64]) -> list[int]:
    """Places from the granule of the longest sentences to that of the shortest, these two by the size of pairs.

    Between them, neighbours are alike on both sides, and so are the hands that they are dealt to.
    """
    bounds: list[int] = granules.tolist()
    order = [np.arange(first, stop) for first, stop in pairwise(bounds)][::-1]
    for end in (0, -1):
        order[end] = order[end][np.argsort(-work[order[end]], kind="stable")]
    places: list[int] = np.concatenate(order).tolist()
    return places
