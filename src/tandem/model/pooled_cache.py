"""What decoding keeps from step to step in memory that stays where it is, so that a step can be recorded and replayed.

Keys and values of what was said lie in a pool that only grows; rows that follow other rows, and sentences that leave,
move the small tables that say where a row's past lies, and nothing else.
"""

# Shapes: G sentences, B rows of each (its beam), R = G · B rows, S source places, T target places, C places of a pool,
# L layers, H heads, K width of a head.

from functools import partial

import torch
from torch import Tensor

from tandem.kernels.pooled_attention import attend_pooled_past, attend_pooled_source
from tandem.model.attend import Attend
from tandem.model.cache import Memory
from tandem.model.positions import Positions, build_positions
from tandem.model.transformer import Transformer

__all__ = ["PooledCache", "PooledRows"]


class PooledCache:
    """Room for a number of sentences, steps and places; what it holds is forgotten with each start."""

    def __init__(
        self, model: Transformer, *, sentences: int, beam: int, steps: int, places: int, source_places: int
    ) -> None:
        """`places` is for what all rows say in all steps, `source_places` for the sentences, padding included."""
        weight, section = model.output_weight, model.section
        layers, heads, width = len(model.decoder), section.heads, section.width // section.heads
        self._model, self._beam = model, beam
        self.said_L2CHK = weight.new_empty((layers, 2, places, heads, width))
        self.seen_L2CHK = weight.new_empty((layers, 2, source_places, heads, width))
        self.table_RT = torch.zeros((sentences * beam, steps), dtype=torch.int32, device=weight.device)
        self.starts_G = torch.zeros(sentences, dtype=torch.int32, device=weight.device)
        self.lengths_G = torch.ones(sentences, dtype=torch.int32, device=weight.device)
        self.length_1 = torch.zeros(1, dtype=torch.long, device=weight.device)
        self.free_1 = torch.zeros(1, dtype=torch.long, device=weight.device)
        self.positions = build_positions(
            section.positions,
            torch.arange(steps, device=weight.device),
            width=section.width,
            heads=section.heads,
        )

    @torch.no_grad()
    def start(self, memory: Memory) -> None:
        """An empty hypothesis for every row of these sentences."""
        sentences, places = memory.states.shape[:2]
        for layer, seen_2CHK in zip(self._model.decoder, self.seen_L2CHK, strict=True):
            for seen_CHK, made in zip(
                seen_2CHK, layer.cross_attention.keys_and_values(memory.states), strict=True
            ):
                seen_CHK[: sentences * places].copy_(made.flatten(0, 1))
        self.starts_G[:sentences].copy_(torch.arange(sentences, device=self.starts_G.device) * places)
        self.lengths_G[:sentences].copy_(memory.lengths)
        self.length_1.zero_()
        self.free_1.zero_()

    @torch.no_grad()
    def keep(self, sentences_G: Tensor) -> None:
        """Of the sentences, only these go on, in this order."""
        rows = sentences_G[:, None] * self._beam + torch.arange(self._beam, device=sentences_G.device)
        for column, chosen in (
            (self.table_RT, rows.flatten()),
            (self.starts_G, sentences_G),
            (self.lengths_G, sentences_G),
        ):
            column[: len(chosen)].copy_(column.index_select(0, chosen))

    def rows(self, sentences: int) -> "PooledRows":
        """The rows of the first so many sentences, for `Transformer.step`."""
        return PooledRows(self, sentences=sentences, beam=self._beam)


class PooledRows:
    """Rows of a pooled cache that take steps together."""

    def __init__(self, cache: PooledCache, *, sentences: int, beam: int) -> None:
        self._cache, self._beam = cache, beam
        self._table_RT = cache.table_RT[: sentences * beam]
        self._starts_G, self._lengths_G = cache.starts_G[:sentences], cache.lengths_G[:sentences]

    @property
    def positions(self) -> Positions:
        """The place that the next step stands at."""
        return self._cache.positions.at(self._cache.length_1)

    def seen(self, layer: int) -> tuple[Tensor, Tensor]:
        """The source's keys and values of a layer, [C, H, K]."""
        key_CHK, value_CHK = self._cache.seen_L2CHK[layer]
        return key_CHK, value_CHK

    def within(self, layer: int) -> Attend:
        """Attention of the newest place over what was said, itself included."""
        return partial(self._attend_within, layer)

    def across(self) -> Attend:
        """Attention of the newest place over the source."""
        return self._attend_across

    def make_room(self) -> None:
        """There is room: whoever takes the steps counts them."""

    @torch.no_grad()
    def advance(self) -> None:
        """The newest place has been through every layer."""
        cache, rows = self._cache, len(self._table_RT)
        newest_R1 = torch.arange(rows, device=cache.free_1.device)[:, None] + cache.free_1
        self._table_RT.index_copy_(1, cache.length_1, newest_R1.to(torch.int32))
        cache.free_1 += rows
        cache.length_1 += 1

    @torch.no_grad()
    def follow(self, rows_R: Tensor) -> None:
        """Each row goes on from another of its own sentence."""
        self._table_RT.copy_(self._table_RT.index_select(0, rows_R))

    def _attend_within(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, *, dropout: float
    ) -> Tensor:
        assert not dropout
        keys_CHK, values_CHK = self._cache.said_L2CHK[layer]
        return attend_pooled_past(
            query,
            key,
            value,
            keys_CHK=keys_CHK,
            values_CHK=values_CHK,
            table_RT=self._table_RT,
            length_1=self._cache.length_1,
            free_1=self._cache.free_1,
        )

    def _attend_across(self, query: Tensor, key: Tensor, value: Tensor, *, dropout: float) -> Tensor:
        assert not dropout
        return attend_pooled_source(
            query,
            keys_CHK=key,
            values_CHK=value,
            starts_G=self._starts_G,
            lengths_G=self._lengths_G,
            beam=self._beam,
        )
