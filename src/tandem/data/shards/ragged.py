"""Rows of unequal length kept in one flat array."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ragged", "build_spans", "pick_ended"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ragged:
    """The pieces of many sentences, one after another, without end marks."""

    ids: NDArray[np.integer[Any]]
    lengths: NDArray[np.integer[Any]]

    def __post_init__(self) -> None:
        """Refuse lengths that do not add up to the ids."""
        if int(self.lengths.sum(dtype=np.int64)) != len(self.ids):
            raise ValueError(
                f"the lengths sum to {self.lengths.sum(dtype=np.int64)}, not {len(self.ids)} ids"
            )

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[int]]) -> "Ragged":
        """Join rows of ids as a subword model gives them."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(lengths.sum()))
        return cls(ids=ids, lengths=lengths)

    def __len__(self) -> int:
        return len(self.lengths)


def build_spans(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Flat indices of all spans `start … start + length`, one span after another."""
    ends: NDArray[np.int64] = lengths.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    spans = np.arange(total, dtype=np.int64)
    spans += (starts - ends + lengths).repeat(lengths)
    return spans


def pick_ended(
    ids: NDArray[np.integer[Any]], starts: NDArray[np.int64], lengths: NDArray[np.int64], *, end: int
) -> Ragged:
    """The sentences at these places of a flat array, each with an end mark, which its length counts."""
    tokens = lengths + 1
    spans = build_spans(starts, tokens)
    ends = tokens.cumsum() - 1
    # Behind the last sentence there may be nothing to read, and what is read there is overwritten.
    spans[ends] = 0
    picked = ids.take(spans) if len(ids) else np.empty(len(spans), ids.dtype)
    picked[ends] = end
    return Ragged(ids=picked, lengths=tokens)
