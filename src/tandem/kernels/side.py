"""How a packed row is laid out for attention: the tables that the loader makes and the kernels walk."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TILE", "Side"]

TILE = 64
"""Places that a program of attention works on: sentences are grouped so that both sides of a group fit in one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """One side of a packed batch of N places; all tensors are int32 and of a fixed size for a shape of batches."""

    tiles: "Tensor"
    """[R, 6] start and stop of a tile, of its group on this side, of its group on the other; unused rows are 0."""
    counts: "Tensor"
    """[2] how many tiles there are, and how many at the front do not face exactly one tile of the other side."""
    sentences: "Tensor"
    """[N] number of the sentence pair at each place, the same on both sides."""
