"""Sentences as a model reads them: padded rectangles, or rows packed without padding."""

# Shapes: P sentences, T places of the longest one, N places of a packed row, M the most sentences that it holds.

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from tandem.kernels.side import Side

__all__ = ["PackedTokens", "PaddedTokens", "Tokens"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaddedTokens:
    """A sentence a row, filled up with the pad id at the end; P may be 0."""

    ids: Tensor
    """[P, T]"""
    lengths: Tensor
    """[P]"""

    @property
    def places(self) -> Tensor:
        """[T] the place in the sentence of every column."""
        return torch.arange(self.ids.shape[1], device=self.ids.device)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedTokens:
    """Sentences end to end in one row; what is left of the row holds the pad id at position 0."""

    ids: Tensor
    """[N]"""
    positions: Tensor
    """[N] place in the sentence, from 0."""
    bounds: Tensor
    """[M + 1] int32: sentence i is bounds[i] to bounds[i + 1]; unused ones repeat the total."""
    longest: int | None = None
    """No sentence is longer, where that is known; a small number makes attention on a GPU much faster."""
    side: Side | None = None
    """Tables for our own kernels of attention, where they were made."""

    @property
    def places(self) -> Tensor:
        """[N] the place in the sentence of every id."""
        return self.positions


Tokens: TypeAlias = PaddedTokens | PackedTokens
