"""The steps of a fused pass, forward and backward; gradients of weights are added where they are summed."""

# Shapes: N and C places of target and source rows, D width, F feed-forward width, H heads, K width of a head.

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import Function

from tandem.kernels import activation, embedding, norm
from tandem.kernels.attention import attention_backward, attention_forward
from tandem.kernels.quantize import Quarter, empty_quarter, finished
from tandem.kernels.side import Side
from tandem.model.fused.weights import HalfLinear, Weight

__all__ = [
    "AddNorm",
    "Attention",
    "Dropout",
    "Embed",
    "FeedForward",
    "Inner",
    "Joint",
    "Linear",
    "Lookup",
    "Maps",
    "Norm",
    "Rotate",
    "Sides",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dropout:
    """What a place in the model drops: a share, and the numbers that say which."""

    share: float
    seed: Tensor
    site: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Norm:
    """A normalisation with its weights."""

    kind: Literal["layer", "rms"]
    epsilon: float
    weight: Weight
    bias: Weight | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """Where a change meets the residual stream and the next sublayer begins."""

    change_bias: Weight | None
    dropout: Dropout
    norm: Norm
    fp8: bool
    """Whether the norm is wanted in fp8 as well."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inner:
    """What lies between the two maps of a feed-forward."""

    kind: Literal["relu", "gelu", "silu"]
    gated: bool
    dropout: Dropout

    @property
    def is_epilogue(self) -> bool:
        """Whether the matrix product can do it on the way out."""
        return self.kind == "relu" and not self.gated and not self.dropout.share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Maps:
    """A feed-forward: two maps and what lies between them."""

    first: HalfLinear
    inner: Inner
    second: HalfLinear


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """Embeddings: the table, and what is done to its rows."""

    weight: Weight
    scale: float
    sinusoidal: bool
    dropout: Dropout
    completes: tuple[Weight, ...]
    """Tables that get no more gradient once this lookup has given its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sides:
    """Who looks at whom."""

    queries: Side
    keys: Side
    causal: bool
    dropout: Dropout


class Embed(Function):
    """Embeddings of ids, placed and dropped; the anchor makes autograd come back here."""

    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,  # noqa: ARG004
        ids_N: Tensor,
        positions_N: Tensor,
        lookup: Lookup,
    ) -> Tensor:
        """[N, D]"""
        ctx.save_for_backward(ids_N)
        ctx.lookup = lookup
        half_VD = lookup.weight.half
        return embedding.forward(
            ids_N,
            positions_N,
            half_VD,
            scale=lookup.scale,
            sinusoidal=lookup.sinusoidal,
            dtype=half_VD.dtype,
            **_dropped(lookup.dropout),
        )

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[None, ...]:
        """Nothing: the gradient goes to the table."""
        (ids_N,) = ctx.saved_tensors
        lookup: Lookup = ctx.lookup
        embedding.backward(
            grad_ND,
            embedding.sort_ids(ids_N),
            scale=lookup.scale,
            weight_grad_VD=lookup.weight.gradient,
            **_dropped(lookup.dropout),
        )
        for weight in lookup.completes:
            weight.complete()
        return None, None, None, None


class AddNorm(Function):
    """The residual stream takes a change in, and is normalised for the next sublayer."""

    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, change_ND: Tensor | None, joint: Joint
    ) -> tuple[Tensor, Tensor, Quarter | None]:
        """The stream and its norm, [N, D] each; the norm in fp8, where it is wanted."""
        ctx.set_materialize_grads(False)
        bias, place = joint.change_bias, joint.norm
        quarter = empty_quarter(x_ND) if joint.fp8 else None
        result = norm.forward(
            x_ND,
            change_ND,
            change_bias_D=None if bias is None else bias.half,
            weight_D=place.weight.parameter,
            bias_D=None if place.bias is None else place.bias.parameter,
            kind=place.kind,
            epsilon=place.epsilon,
            dtype=place.weight.half.dtype,
            quarter=quarter,
            **_dropped(joint.dropout),
        )
        ctx.save_for_backward(result.sum)
        ctx.joint, ctx.has_change = joint, change_ND is not None
        stream_ND = result.sum if change_ND is not None else x_ND.view_as(x_ND)
        return stream_ND, result.normed, finished(quarter) if quarter else None

    @staticmethod
    def backward(
        ctx: Any, grad_sum: Tensor | None, grad_normed: Tensor, _: None
    ) -> tuple[Tensor | None, ...]:
        """Of the stream before, and of the change."""
        (sum_ND,) = ctx.saved_tensors
        joint: Joint = ctx.joint
        bias, place = joint.change_bias, joint.norm
        grad_x, grad_change = norm.backward(
            grad_normed,
            grad_sum,
            sum_ND=sum_ND,
            weight_D=place.weight.parameter,
            kind=place.kind,
            epsilon=place.epsilon,
            has_change=ctx.has_change,
            weight_grad_D=place.weight.gradient,
            bias_grad_D=None if place.bias is None else place.bias.gradient,
            change_bias_grad_D=None if bias is None else bias.gradient,
            **_dropped(joint.dropout),
        )
        for weight in (place.weight, place.bias, bias):
            if weight is not None:
                weight.complete()
        return grad_x, grad_change, None


class Linear(Function):
    """A linear map with its bias, or without it where the next kernel adds it."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, quarter: Quarter | None, linear: HalfLinear, bias: bool) -> Tensor:
        """[N, F]"""
        ctx.save_for_backward(x_ND)
        ctx.linear, ctx.bias = linear, bias
        return linear.with_bias(x_ND, quarter) if bias else linear.without_bias(x_ND, quarter)

    @staticmethod
    def backward(ctx: Any, grad_NF: Tensor) -> tuple[Tensor | None, ...]:
        """Of the input."""
        (x_ND,) = ctx.saved_tensors
        linear: HalfLinear = ctx.linear
        quarter = linear.learn_bias(grad_NF) if ctx.bias else None
        linear.learn(grad_NF, x_ND)
        return linear.back(grad_NF, quarter), None, None, None


class FeedForward(Function):
    """Both maps and what lies between them; the second one's bias is left to the next kernel."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, quarter: Quarter | None, maps: Maps) -> Tensor:
        """[N, D]"""
        ctx.maps = maps
        inner = maps.inner
        if inner.is_epilogue:
            active_NF, active_quarter = maps.first.rectified(x_ND, quarter)
            ctx.save_for_backward(x_ND, active_NF, active_NF)
            return maps.second.without_bias(active_NF, active_quarter)
        raw = maps.first.with_bias(x_ND, quarter)
        active_NF = activation.forward(raw, kind=inner.kind, gated=inner.gated, **_dropped(inner.dropout))
        ctx.save_for_backward(x_ND, raw, active_NF)
        return maps.second.without_bias(active_NF, None)

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        """Of the input."""
        x_ND, raw, active_NF = ctx.saved_tensors
        maps: Maps = ctx.maps
        first, second, inner = maps.first, maps.second, maps.inner
        second.learn(grad_ND, active_NF)
        grad_raw = second.back(grad_ND, None)
        quarter = None
        if inner.is_epilogue:
            quarter = first.unrectified(grad_raw, active_NF, inner.dropout.seed)
        else:
            grad_raw = activation.backward(
                grad_raw,
                raw,
                kind=inner.kind,
                gated=inner.gated,
                bias_grad_I=first.bias.gradient,
                **_dropped(inner.dropout),
            )
        first.bias.complete()
        first.learn(grad_raw, x_ND)
        return first.back(grad_raw, quarter), None, None


class Attention(Function):
    """Attention of a row over itself (queries, keys and values in one tensor) or over another row."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor, other: Tensor | None, sides: Sides) -> Tensor:
        """[N, D] from [N, 3, H, K], or from [N, 1, H, K] and [C, 2, H, K]."""
        query, key, value = _parts(mine, other)
        out_NHK, log_sums_HN = attention_forward(
            query,
            key,
            value,
            queries=sides.queries,
            keys=sides.keys,
            causal=sides.causal,
            **_dropped(sides.dropout),
        )
        ctx.save_for_backward(mine, other, out_NHK, log_sums_HN)
        ctx.sides = sides
        return out_NHK.flatten(1)

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        """Of both inputs, in their shapes."""
        mine, other, out_NHK, log_sums_HN = ctx.saved_tensors
        sides: Sides = ctx.sides
        grad_mine = torch.empty_like(mine)
        grad_other = None if other is None else torch.empty_like(other)
        query, key, value = _parts(mine, other)
        grad_query, grad_key, grad_value = _parts(grad_mine, grad_other)
        attention_backward(
            grad_ND.view_as(out_NHK),
            query=query,
            key=key,
            value=value,
            out=out_NHK,
            log_sums=log_sums_HN,
            queries=sides.queries,
            keys=sides.keys,
            causal=sides.causal,
            grad_query=grad_query,
            grad_key=grad_key,
            grad_value=grad_value,
            **_dropped(sides.dropout),
        )
        return grad_mine, grad_other, None


class Rotate(Function):
    """Queries and keys turned by their places, in place."""

    @staticmethod
    def forward(ctx: Any, mixed_N3HK: Tensor, cosines_N1K: Tensor, sines_N1K: Tensor) -> Tensor:
        """The same tensor."""
        ctx.save_for_backward(cosines_N1K, sines_N1K)
        ctx.mark_dirty(mixed_N3HK)
        _turn_(mixed_N3HK, cosines_N1K, sines_N1K)
        return mixed_N3HK

    @staticmethod
    def backward(ctx: Any, grad_N3HK: Tensor) -> tuple[Tensor | None, ...]:
        """Turned back."""
        cosines_N1K, sines_N1K = ctx.saved_tensors
        _turn_(grad_N3HK, cosines_N1K, -sines_N1K)
        return grad_N3HK, None, None


def _turn_(mixed_N3HK: Tensor, cosines_N1K: Tensor, sines_N1K: Tensor) -> None:
    turned = mixed_N3HK[:, :2]
    first, second = turned.chunk(2, dim=-1)
    across = torch.cat((-second, first), dim=-1)
    turned.copy_(turned * cosines_N1K[:, None] + across * sines_N1K[:, None])


def _parts(mine: Tensor, other: Tensor | None) -> tuple[Tensor, ...]:
    """Queries, keys and values."""
    return mine.unbind(1) if other is None else (*mine.unbind(1), *other.unbind(1))


def _dropped(dropout: Dropout) -> dict[str, Any]:
    return {"share": dropout.share, "seed": dropout.seed, "site": dropout.site}
