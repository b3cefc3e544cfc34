"""What decoding keeps from step to step: keys and values of the source and of what was said so far."""

# Shapes: G sentences, B rows of each (its beam), P = G · B rows, S source places, T target places made room for,
# L layers, H heads, K width of a head.

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from tandem.model.attend import Attend
from tandem.model.positions import Positions

__all__ = ["DecodingCache", "Memory", "StepCache"]

_BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """Encoded source sentences."""

    states: Tensor
    """[G, S, D]"""
    lengths: Tensor
    """[G]"""


class StepCache(Protocol):
    """Rows of hypotheses, as a step needs them."""

    @property
    def positions(self) -> Positions:
        """The place that the next step stands at."""
        ...

    def seen(self, layer: int) -> tuple[Tensor, Tensor]:
        """The source's keys and values of a layer."""
        ...

    def within(self, layer: int) -> Attend:
        """Attention of the newest place over what was said, itself included."""
        ...

    def across(self) -> Attend:
        """Attention of the newest place over the source."""
        ...

    def make_room(self) -> None:
        """Room for one place more."""
        ...

    def advance(self) -> None:
        """The newest place has been through every layer."""
        ...


class DecodingCache:
    """Rows of hypotheses that grow by one place a step; the rows of a sentence lie side by side."""

    def __init__(
        self,
        seen: Sequence[tuple[Tensor, Tensor]],
        mask_G11S: Tensor | None,
        *,
        positions: Positions,
        max_steps: int,
        beam: int,
    ) -> None:
        """`seen`: the source's keys and values of every layer, [G, S, H, K]; the mask tells tokens from padding."""
        self._seen = [
            (key.transpose(1, 2).contiguous(), value.transpose(1, 2).contiguous()) for key, value in seen
        ]
        self._mask_G11S = mask_G11S
        self._positions = positions
        self._max_steps = max_steps
        self._beam = beam
        sentences, _, heads, width = seen[0][0].shape
        shape = (len(seen), 2, sentences * beam, heads, 0, width)
        self._said_L2PHTK = seen[0][0].new_empty(shape)
        self.length = 0

    @property
    def rows(self) -> int:
        """How many hypotheses are being decoded."""
        return self._said_L2PHTK.shape[2]

    @property
    def positions(self) -> Positions:
        """The place that the next step stands at."""
        return self._positions.at(self.length)

    def seen(self, layer: int) -> tuple[Tensor, Tensor]:
        """The source's keys and values of a layer, [G, H, S, K]."""
        return self._seen[layer]

    def within(self, layer: int) -> Attend:
        """Attention of the newest place over what was said, itself included."""
        return partial(self._attend_within, layer)

    def across(self) -> Attend:
        """Attention of the newest place over the source."""
        return self._attend_across

    def make_room(self) -> None:
        """Room for one place more; rows grow in blocks."""
        if self.length == self._max_steps:
            raise ValueError(f"The cache was made for {self._max_steps} steps.")
        *shape, room, width = self._said_L2PHTK.shape
        if self.length == room:
            more = min(_BLOCK, self._max_steps - room)
            block = self._said_L2PHTK.new_empty((*shape, more, width))
            self._said_L2PHTK = torch.cat((self._said_L2PHTK, block), dim=-2)

    def advance(self) -> None:
        """The newest place has been through every layer."""
        self.length += 1

    @torch.no_grad()
    def select(self, rows: Tensor, *, same_sentences: bool = False) -> None:
        """Keep, repeat or reorder rows; rows of a sentence stay side by side, as many as there were at the start.

        With `same_sentences` each row is replaced by one of its own sentence, and the source's keys and values,
        which are kept once a sentence, stay as they are.
        """
        self._said_L2PHTK = self._said_L2PHTK.index_select(2, rows)
        if same_sentences:
            return
        sentences = rows[:: self._beam] // self._beam
        self._seen = [
            (key.index_select(0, sentences), value.index_select(0, sentences)) for key, value in self._seen
        ]
        if self._mask_G11S is not None:
            self._mask_G11S = self._mask_G11S.index_select(0, sentences)

    def _attend_within(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, *, dropout: float
    ) -> Tensor:
        self._said_L2PHTK[layer, 0, :, :, self.length] = key
        self._said_L2PHTK[layer, 1, :, :, self.length] = value
        keys, values = self._said_L2PHTK[layer, :, :, :, : self.length + 1]
        return functional.scaled_dot_product_attention(
            query.unsqueeze(2), keys, values, dropout_p=dropout
        ).squeeze(2)

    def _attend_across(self, query: Tensor, key: Tensor, value: Tensor, *, dropout: float) -> Tensor:
        # The beam of a sentence takes the place of target positions: its keys and values need no copies.
        query_GHBK = query.view(len(key), self._beam, *query.shape[1:]).transpose(1, 2)
        attended_GHBK = functional.scaled_dot_product_attention(
            query_GHBK, key, value, attn_mask=self._mask_G11S, dropout_p=dropout
        )
        return attended_GHBK.transpose(1, 2).flatten(0, 1)
