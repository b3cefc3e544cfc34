"""A Transformer's forward pass over packed rows, made of fused steps; backward sums gradients into their buckets."""

# Shapes: N and C places of target and source rows, D width, H heads, K width of a head.

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from tandem.kernels.quantize import Quarter
from tandem.model.fused.functions import (
    AddNorm,
    Attention,
    Dropout,
    Embed,
    FeedForward,
    Inner,
    Joint,
    Linear,
    Lookup,
    Maps,
    Norm,
    Rotate,
    Sides,
)
from tandem.model.fused.weights import HalfWeights, OnGradient, QuarterWeights, Weight
from tandem.model.layers import CrossAttention, DecoderLayer, EncoderLayer, Residual, SelfAttention
from tandem.model.positions import Positions, build_positions
from tandem.model.tokens import PackedTokens
from tandem.model.transformer import Transformer

__all__ = ["FusedTransformer"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Read:
    """What a map reads: in half precision and, where a kernel has made it on its way, in fp8."""

    x_ND: Tensor
    quarter: Quarter | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stream:
    """The residual stream, and the newest change that it has not taken in yet."""

    now: _Read
    change_ND: Tensor | None = None
    change_bias: Weight | None = None


class FusedTransformer:
    """Computes what the model does while it trains; the model keeps the parameters."""

    def __init__(
        self,
        model: Transformer,
        *,
        halves: Mapping[Tensor, Tensor],
        on_gradient: OnGradient,
        fp8: bool = False,
    ) -> None:
        """`halves`: the parameters in half precision; `on_gradient` is told of each whose gradient is complete.

        With fp8 the linear maps multiply in it, forward and back; their sides must be multiples of 16.
        """
        self._model = model
        self._section = model.section
        self._fp8 = fp8
        self._weights = HalfWeights(halves, on_gradient)
        if fp8:
            maps = [module for module in model.modules() if isinstance(module, nn.Linear)]
            self._weights = QuarterWeights(halves, on_gradient, maps)
        device = model.target_embedding.device
        self._anchor = torch.zeros((), device=device, requires_grad=True)
        self._seed = torch.zeros(2, dtype=torch.int32, device=device)
        self._site = 0

    @property
    def output(self) -> Weight:
        """The matrix that makes logits of states."""
        return self._weights.of(self._model.output_weight)

    def __call__(self, source: PackedTokens, target: PackedTokens, *, seed: Tensor) -> Tensor:
        """[N, D]: decoder states in half precision; the seed is two int32 on the device."""
        self._seed, self._site = seed, 0
        self._weights.renew()
        memory = self._encode(source)
        embedded_ND = self._embed(target, self._model.target_embedding, completes=())
        stream = _Stream(now=_Read(x_ND=embedded_ND))
        positions = self._positions(target)
        for layer in self._model.decoder:
            stream = self._around(
                stream,
                layer.around_attention,
                layer.attention.output,
                partial(self._look_within, layer.attention, tokens=target, positions=positions, causal=True),
            )
            stream = self._around(
                stream,
                layer.around_cross_attention,
                layer.cross_attention.output,
                partial(
                    self._look_across, layer.cross_attention, target=target, memory=memory, source=source
                ),
            )
            stream = self._feed(stream, layer)
        return self._end(stream, self._model.decoder_norm, is_read=False).x_ND

    def _encode(self, source: PackedTokens) -> _Read:
        model = self._model
        tables = (model.target_embedding, model.source_embedding, model.output_projection)
        # Backward comes here last.
        completes = tuple(self._weights.of(table) for table in tables if table is not None)
        table = model.target_embedding if model.source_embedding is None else model.source_embedding
        stream = _Stream(now=_Read(x_ND=self._embed(source, table, completes=completes)))
        positions = self._positions(source)
        for layer in model.encoder:
            stream = self._around(
                stream,
                layer.around_attention,
                layer.attention.output,
                partial(self._look_within, layer.attention, tokens=source, positions=positions, causal=False),
            )
            stream = self._feed(stream, layer)
        return self._end(stream, model.encoder_norm, is_read=True)

    def _around(
        self, stream: _Stream, residual: Residual, last: nn.Linear, sublayer: Callable[[_Read], Tensor]
    ) -> _Stream:
        """The way around a sublayer; the bias of its last map is added with the change."""
        bias = self._weights.of(last.bias)
        if residual.before:
            x_ND, normed = self._add_norm(stream, residual.norm)
            return _Stream(now=_Read(x_ND=x_ND), change_ND=sublayer(normed), change_bias=bias)
        changed = _Stream(now=stream.now, change_ND=sublayer(stream.now), change_bias=bias)
        _, normed = self._add_norm(changed, residual.norm)
        return _Stream(now=normed)

    def _end(self, stream: _Stream, final: nn.Module, *, is_read: bool) -> _Read:
        """What comes out of a stack; whether linear maps read it."""
        if isinstance(final, nn.Identity):
            return stream.now
        _, normed = self._add_norm(stream, final, is_read=is_read)
        return normed

    def _add_norm(self, stream: _Stream, module: nn.Module, *, is_read: bool = True) -> tuple[Tensor, _Read]:
        x_ND, normed_ND, quarter = AddNorm.apply(
            stream.now.x_ND,
            stream.change_ND,
            Joint(
                change_bias=stream.change_bias,
                dropout=self._dropout(self._section.dropout),
                norm=self._norm(module),
                fp8=self._fp8 and is_read,
            ),
        )
        return x_ND, _Read(x_ND=normed_ND, quarter=quarter)

    def _look_within(
        self, module: SelfAttention, read: _Read, *, tokens: PackedTokens, positions: Positions, causal: bool
    ) -> Tensor:
        mixed = self._map(read, module.query_key_value)
        mixed = mixed.view(len(mixed), 3, module.heads, module.head_width)
        if positions.cosines_X1K is not None:
            mixed = Rotate.apply(mixed, positions.cosines_X1K, positions.sines_X1K)
        sides = self._sides(tokens, tokens, causal=causal)
        attended_ND = Attention.apply(mixed, None, sides)
        return self._map(_Read(x_ND=attended_ND), module.output, bias=False)

    def _look_across(
        self,
        module: CrossAttention,
        read: _Read,
        *,
        target: PackedTokens,
        memory: _Read,
        source: PackedTokens,
    ) -> Tensor:
        query = self._map(read, module.query)
        seen = self._map(memory, module.key_value)
        attended_ND = Attention.apply(
            query.view(len(query), 1, module.heads, module.head_width),
            seen.view(len(seen), 2, module.heads, module.head_width),
            self._sides(target, source, causal=False),
        )
        return self._map(_Read(x_ND=attended_ND), module.output, bias=False)

    def _map(self, read: _Read, module: nn.Linear, *, bias: bool = True) -> Tensor:
        mapped: Tensor = Linear.apply(read.x_ND, read.quarter, self._weights.linear(module), bias)
        return mapped

    def _feed(self, stream: _Stream, layer: EncoderLayer | DecoderLayer) -> _Stream:
        module = layer.feed_forward
        maps = Maps(
            first=self._weights.linear(module.inner),
            inner=Inner(
                kind=self._section.activation, gated=module.gated, dropout=self._dropout(module.dropout)
            ),
            second=self._weights.linear(module.output),
        )
        return self._around(
            stream,
            layer.around_feed_forward,
            module.output,
            lambda read: FeedForward.apply(read.x_ND, read.quarter, maps),
        )

    def _embed(self, tokens: PackedTokens, table: Tensor, *, completes: tuple[Weight, ...]) -> Tensor:
        lookup = Lookup(
            weight=self._weights.of(table),
            scale=math.sqrt(self._section.width),
            sinusoidal=self._section.positions == "sinusoidal",
            dropout=self._dropout(self._section.dropout),
            completes=completes,
        )
        embedded: Tensor = Embed.apply(self._anchor, tokens.ids, tokens.positions, lookup)
        return embedded

    def _positions(self, tokens: PackedTokens) -> Positions:
        section = self._section
        if section.positions == "sinusoidal":
            return Positions()
        return build_positions("rotary", tokens.positions, width=section.width, heads=section.heads)

    def _sides(self, queries: PackedTokens, keys: PackedTokens, *, causal: bool) -> Sides:
        assert queries.side is not None
        assert keys.side is not None
        return Sides(
            queries=queries.side,
            keys=keys.side,
            causal=causal,
            dropout=self._dropout(self._section.attention_dropout),
        )

    def _norm(self, module: nn.Module) -> Norm:
        match module:
            case nn.LayerNorm():
                bias = self._weights.of(module.bias)
                return Norm(
                    kind="layer", epsilon=module.eps, weight=self._weights.of(module.weight), bias=bias
                )
            case nn.RMSNorm(eps=float(epsilon)):
                return Norm(kind="rms", epsilon=epsilon, weight=self._weights.of(module.weight), bias=None)
            case _:
                raise TypeError(f"no fused kernel normalises like {type(module).__name__}")

    def _dropout(self, share: float) -> Dropout:
        self._site += 1
        return Dropout(share=share, seed=self._seed, site=self._site)
