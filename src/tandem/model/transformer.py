"""The encoder–decoder Transformer."""

# Shapes: X the leading shape of a batch's tokens, P rows, D width, V target vocabulary.

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from tandem.config import ModelSection
from tandem.model.attend import attend_across, attend_within, padding_mask
from tandem.model.cache import DecodingCache, Memory, StepCache
from tandem.model.dropout import dropped
from tandem.model.layers import DecoderLayer, EncoderLayer, build_norm
from tandem.model.positions import Positions, build_positions
from tandem.model.tokens import PaddedTokens, Tokens

__all__ = ["Transformer"]


class Transformer(nn.Module):
    """Reads source tokens and says, for every target token, what it knows about the next one."""

    def __init__(
        self, section: ModelSection, *, source_vocabulary: int, target_vocabulary: int, pad: int
    ) -> None:
        super().__init__()
        self.section = section
        self.pad = pad
        self.target_embedding = nn.Parameter(torch.empty(target_vocabulary, section.width))
        # Matrices that are shared exist once, so that files and gradients hold them once.
        self.source_embedding = self.output_projection = None
        if section.tied != "all":
            self.source_embedding = nn.Parameter(torch.empty(source_vocabulary, section.width))
        if section.tied == "none":
            self.output_projection = nn.Parameter(torch.empty(target_vocabulary, section.width))
        encoder = nn.ModuleList(EncoderLayer(section) for _ in range(section.encoder_layers))
        decoder = nn.ModuleList(DecoderLayer(section) for _ in range(section.decoder_layers))
        self.encoder = cast("Sequence[EncoderLayer]", encoder)
        self.decoder = cast("Sequence[DecoderLayer]", decoder)
        final = section.norm_place == "pre"
        self.encoder_norm = build_norm(section) if final else nn.Identity()
        self.decoder_norm = build_norm(section) if final else nn.Identity()

    def forward(self, source: Tokens, target: Tokens) -> Tensor:
        """[X, D]: decoder states before the output projection, X the shape of the target's ids."""
        memory_XD = self._encode(source)
        positions = self._positions(target.places)
        within, across = attend_within(target, causal=True), attend_across(target, source)
        x_XD = self._embed(target.ids, self.target_embedding, positions)
        for layer in self.decoder:
            seen = layer.cross_attention.keys_and_values(memory_XD)
            x_XD = layer(x_XD, seen=seen, within=within, across=across, positions=positions)
        states_XD: Tensor = self.decoder_norm(x_XD)
        return states_XD

    @property
    def output_weight(self) -> Tensor:
        """[V, D]: states times its transpose are logits; there is no bias."""
        return self.target_embedding if self.output_projection is None else self.output_projection

    def logits(self, states_XD: Tensor) -> Tensor:
        """[X, V]"""
        return functional.linear(states_XD, self.output_weight)

    @torch.no_grad()
    def encode(self, source: PaddedTokens) -> Memory:
        """Source sentences ready for decoding."""
        return Memory(states=self._encode(source), lengths=source.lengths)

    @torch.no_grad()
    def start(self, memory: Memory, *, max_steps: int, beam: int = 1) -> DecodingCache:
        """An empty hypothesis for every row: `beam` rows side by side for each sentence of the memory."""
        states = memory.states
        places = torch.arange(max_steps, device=states.device)
        return DecodingCache(
            [layer.cross_attention.keys_and_values(states) for layer in self.decoder],
            padding_mask(states[..., 0], memory.lengths),
            positions=self._positions(places),
            max_steps=max_steps,
            beam=beam,
        )

    @torch.no_grad()
    def step(self, ids_P: Tensor, cache: StepCache) -> Tensor:
        """[P, D]: states after one token more in every row."""
        cache.make_room()
        positions = cache.positions
        x_PD = self._embed(ids_P, self.target_embedding, positions)
        for number, layer in enumerate(self.decoder):
            x_PD = layer(
                x_PD,
                seen=cache.seen(number),
                within=cache.within(number),
                across=cache.across(),
                positions=positions,
            )
        cache.advance()
        states_PD: Tensor = self.decoder_norm(x_PD)
        return states_PD

    def _encode(self, source: Tokens) -> Tensor:
        positions = self._positions(source.places)
        attend = attend_within(source, causal=False)
        weight = self.target_embedding if self.source_embedding is None else self.source_embedding
        x_XD = self._embed(source.ids, weight, positions)
        for layer in self.encoder:
            x_XD = layer(x_XD, attend=attend, positions=positions)
        memory_XD: Tensor = self.encoder_norm(x_XD)
        return memory_XD

    def _positions(self, places_X: Tensor) -> Positions:
        section = self.section
        return build_positions(section.positions, places_X, width=section.width, heads=section.heads)

    def _embed(self, ids_X: Tensor, weight_VD: Tensor, positions: Positions) -> Tensor:
        embedded_XD = functional.embedding(ids_X, weight_VD) * math.sqrt(self.section.width)
        placed_XD = positions.add_to(embedded_XD)
        return dropped(placed_XD, share=self.section.dropout, training=self.training)
