"""What kernels are given to work on: the sizes of a model, random numbers, and packed rows of made-up sentences."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from benchmarks.gpu.corpus import Synthetic, draw_lengths
from torch import Tensor

from tandem.config import ModelSection
from tandem.data.batches.fill import build_packed
from tandem.data.batches.shape import BatchShape
from tandem.data.shards.ragged import Ragged
from tandem.data.shards.special import SpecialIds
from tandem.model.tokens import PackedTokens
from tandem.train.tokens import to_tokens

__all__ = ["SPECIAL", "Row", "Setting"]

SPECIAL = SpecialIds()
_FIRST_PIECE = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """A packed batch on the device."""

    source: PackedTokens
    target: PackedTokens
    labels: Tensor
    source_tokens: int
    """Real ones: what follows them is padding."""
    target_tokens: int
    pairs: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """A model's size, and where and how it is calculated."""

    size: str
    places: int
    """Of a packed row, on each side."""
    vocabulary: int
    device: torch.device

    @property
    def dtype(self) -> torch.dtype:
        """Of activations; Triton's interpreter, which stands in for a GPU, is wrong in bf16."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float16

    @cached_property
    def model(self) -> ModelSection:
        """The preset of that name."""
        return ModelSection.model_validate({"preset": self.size})

    @cached_property
    def seed(self) -> Tensor:
        """Of dropout."""
        return torch.tensor([1, 2], dtype=torch.int32, device=self.device)

    def draw(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Normal numbers, others each time; in half precision where nothing else is said."""
        return torch.randn(shape, device=self.device).to(dtype or self.dtype)

    @cached_property
    def row(self) -> Row:
        """Sentences as long as those of WMT, as many as fit."""
        text = Synthetic(vocabulary=self.vocabulary, longest=min(249, self.places // 4))
        dice = np.random.default_rng(text.seed)
        source, target = draw_lengths(text, dice, self.places)
        fits = np.maximum(np.cumsum(source + 1), np.cumsum(target + 1)) <= self.places
        batch = build_packed(
            *(_sentences(lengths[fits], self.vocabulary, dice) for lengths in (source, target)),
            special=SPECIAL,
            shape=BatchShape(layout="packed", source_tokens=self.places, target_tokens=self.places),
        ).map(lambda array: torch.from_numpy(array).to(self.device))
        sides = to_tokens(batch)
        assert all(isinstance(side, PackedTokens) for side in sides)
        return Row(
            source=sides[0],  # type: ignore[arg-type]
            target=sides[1],  # type: ignore[arg-type]
            labels=batch.labels,
            source_tokens=int(source[fits].sum()) + int(fits.sum()),
            target_tokens=batch.target_tokens,
            pairs=batch.pairs,
        )


def _sentences(lengths: np.ndarray, vocabulary: int, dice: np.random.Generator) -> Ragged:
    """Pieces as frequent as words are (Zipf's law)."""
    share = np.cumsum(1 / np.arange(1, vocabulary - _FIRST_PIECE + 1))
    ids = np.searchsorted(share / share[-1], dice.random(int(lengths.sum()))) + _FIRST_PIECE
    return Ragged(ids=ids.astype(np.int32), lengths=lengths.astype(np.uint16))
