"""What lies between matrix products: norms, activations, column sums, embeddings; ours, eager and compiled."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from benchmarks.gpu.contest import OURS, Contender, Contest, Ready, by_autograd
from benchmarks.gpu.setting import Setting
from torch import Tensor
from torch.nn import functional

from tandem.kernels import activation, columns, embedding, norm
from tandem.model.positions import build_positions

__all__ = ["ELEMENTWISE", "build_elementwise"]

ELEMENTWISE = ("residual, dropout, norm", "relu backward, bias sum", "column sums", "embedding")
"""The contests."""

_SHARE = 0.1
_SITE = 3
_EPSILON = 1e-5
_EAGER = "eager"

_Compile: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
_WAYS: Mapping[str, _Compile] = {
    _EAGER: lambda function: function,
    "compiled": partial(torch.compile, dynamic=False),
}
_UNMIXED: Mapping[str, _Compile] = {
    "compiled, no mix-order reduction": partial(
        torch.compile, dynamic=False, options={"triton.mix_order_reduction": False}
    )
}


def build_elementwise(setting: Setting, kernel: str) -> Contest:
    """Return the contest of that name, with numbers of its own."""
    contests = dict(zip(ELEMENTWISE, (_norm, _relu, _columns, _embedding), strict=True))
    return contests[kernel](setting)


def _contenders(prepare: Callable[[_Compile], Ready], ways: Mapping[str, _Compile]) -> list[Contender]:
    return [
        Contender(name=name, prepare=partial(prepare, way), is_compiled=name != _EAGER)
        for name, way in ways.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _AddNorm:
    """The sum of a residual stream and a change that is dropped in part, and its norm."""

    x: Tensor
    change: Tensor
    change_bias: Tensor
    weight: Tensor
    bias: Tensor
    grad_sum: Tensor
    grad_normed: Tensor
    seed: Tensor

    def ours(self, *, has_bias: bool) -> Ready:
        vectors = [torch.zeros_like(self.weight) for _ in range(3)]
        exact = self._forward(share=0.0, has_bias=False)
        grads = self._backward(exact.sum, share=0.0, vectors=[*vectors[:2], None])
        outcome = _norm_outcome((exact.sum, exact.normed), (*grads, *(each.clone() for each in vectors[:2])))
        given = [*vectors[:2], vectors[2] if has_bias else None]
        forward = partial(self._forward, share=_SHARE, has_bias=has_bias)
        backward = partial(self._backward, share=_SHARE, vectors=given)
        sums = forward().sum
        return Ready(
            runs={
                "forward": forward,
                "backward": lambda: backward(sums),
                "both": lambda: backward(forward().sum),
            },
            outcome=outcome,
        )

    def torchs(self, way: _Compile) -> Ready:
        def exact(x: Tensor, change: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
            sums = x + change
            return sums, functional.layer_norm(sums, weight.shape, weight, bias, _EPSILON)

        def dropping(x: Tensor, change: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
            return exact(x, functional.dropout(change, _SHARE), weight, bias)

        # Weights in half precision, as a model has them that was made so: faster than fp32 for the others.
        inputs = [
            each.detach().to(self.x.dtype).requires_grad_()
            for each in (self.x, self.change, self.weight, self.bias)
        ]
        grads_out = [self.grad_sum, self.grad_normed]
        found = way(exact)(*inputs)
        outcome = _norm_outcome(
            tuple(each.detach() for each in found), torch.autograd.grad(found, inputs, grads_out)
        )
        return Ready(runs=by_autograd(way(dropping), inputs, grads_out), outcome=outcome)

    def _forward(self, *, share: float, has_bias: bool) -> norm.Normed:
        return norm.forward(
            self.x,
            self.change,
            change_bias_D=self.change_bias if has_bias else None,
            weight_D=self.weight,
            bias_D=self.bias,
            kind="layer",
            epsilon=_EPSILON,
            share=share,
            seed=self.seed,
            site=_SITE,
            dtype=self.x.dtype,
        )

    def _backward(self, sums: Tensor, *, share: float, vectors: list[Any]) -> tuple[Tensor, Tensor | None]:
        return norm.backward(
            self.grad_normed,
            self.grad_sum,
            sum_ND=sums,
            weight_D=self.weight,
            kind="layer",
            epsilon=_EPSILON,
            share=share,
            seed=self.seed,
            site=_SITE,
            has_change=True,
            weight_grad_D=vectors[0],
            bias_grad_D=vectors[1],
            change_bias_grad_D=vectors[2],
        )


def _norm_outcome(found: tuple[Tensor, ...], grads: tuple[Tensor | None, ...]) -> dict[str, Tensor]:
    names = "sum", "normed", "grad_x", "grad_change", "grad_weight", "grad_bias"
    return {name: each for name, each in zip(names, (*found, *grads), strict=True) if each is not None}


def _norm(setting: Setting) -> Contest:
    places, width = setting.places, setting.model.width
    x, change, grad_sum, grad_normed = (setting.draw(places, width) for _ in range(4))
    weight, bias, change_bias = (setting.draw(width, dtype=torch.float32) for _ in range(3))
    problem = _AddNorm(
        x=x,
        change=change,
        change_bias=change_bias.to(x.dtype),
        weight=weight,
        bias=bias,
        grad_sum=grad_sum,
        grad_normed=grad_normed,
        seed=setting.seed,
    )
    one = x.numel() * x.element_size()
    return Contest(
        kernel=ELEMENTWISE[0],
        size=setting.size,
        least_bytes={"forward": 4 * one, "backward": 5 * one, "both": 9 * one},
        contenders=[
            Contender(name=OURS, prepare=partial(problem.ours, has_bias=False)),
            Contender(name=f"{OURS}, with the change's bias", prepare=partial(problem.ours, has_bias=True)),
            *_contenders(problem.torchs, {**_WAYS, **_UNMIXED}),
        ],
    )


def _relu(setting: Setting) -> Contest:
    width = setting.model.feed_forward
    active = setting.draw(setting.places, width).relu()
    grad = setting.draw(setting.places, width)

    def ours(grad: Tensor, into: Tensor) -> Tensor:
        return activation.backward(
            grad,
            active,
            kind="relu",
            gated=False,
            share=0.0,
            seed=setting.seed,
            site=_SITE,
            bias_grad_I=into,
        )

    def plain(grad: Tensor, into: Tensor) -> Tensor:
        found: Tensor = torch.ops.aten.threshold_backward(grad, active, 0)
        into += found.sum(0, dtype=torch.float32)
        return found

    def ready(way: _Compile, *, function: Callable[[Tensor, Tensor], Tensor]) -> Ready:
        into = torch.zeros(width, device=grad.device)
        # Ours writes over what it is given.
        own, call = grad.clone(), way(function)
        outcome = {"grad": call(own, into).clone(), "grad_bias": into.clone()}
        return Ready(runs={"backward": lambda: call(own, into)}, outcome=outcome)

    return Contest(
        kernel=ELEMENTWISE[1],
        size=setting.size,
        least_bytes={"backward": 3 * grad.numel() * grad.element_size()},
        contenders=[
            Contender(name=OURS, prepare=partial(ready, _WAYS[_EAGER], function=ours)),
            *_contenders(partial(ready, function=plain), _WAYS),
        ],
    )


def _columns(setting: Setting) -> Contest:
    y = setting.draw(setting.places, 3 * setting.model.width)

    def plain(y: Tensor, into: Tensor) -> None:
        into += y.sum(0, dtype=torch.float32)

    def ready(way: _Compile, *, function: Callable[[Tensor, Tensor], None]) -> Ready:
        into = torch.zeros(y.shape[1], device=y.device)
        call = way(function)
        call(y, into)
        return Ready(runs={"backward": lambda: call(y, into)}, outcome={"sums": into.clone()})

    return Contest(
        kernel=ELEMENTWISE[2],
        size=setting.size,
        least_bytes={"backward": y.numel() * y.element_size()},
        contenders=[
            Contender(name=OURS, prepare=partial(ready, _WAYS[_EAGER], function=columns.add_column_sums)),
            *_contenders(partial(ready, function=plain), _WAYS),
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Embed:
    """Rows of the embedding with sinusoids, dropped in part."""

    ids: Tensor
    positions: Tensor
    weight: Tensor
    grad: Tensor
    seed: Tensor

    @property
    def scale(self) -> float:
        return math.sqrt(self.weight.shape[1])

    def ours(self, *, sorts: bool) -> Ready:
        into = torch.zeros_like(self.weight, dtype=torch.float32)
        beforehand = embedding.sort_ids(self.ids)

        def forward(share: float) -> Tensor:
            return embedding.forward(
                self.ids,
                self.positions,
                self.weight,
                scale=self.scale,
                sinusoidal=True,
                dtype=self.grad.dtype,
                share=share,
                seed=self.seed,
                site=_SITE,
            )

        def backward(share: float) -> None:
            ids = embedding.sort_ids(self.ids) if sorts else beforehand
            embedding.backward(
                self.grad,
                ids,
                scale=self.scale,
                share=share,
                seed=self.seed,
                site=_SITE,
                weight_grad_VD=into,
            )

        out = forward(0.0)
        backward(0.0)
        return Ready(
            runs={"forward": lambda: forward(_SHARE), "backward": lambda: backward(_SHARE)},
            outcome={"out": out, "grad_weight": into.clone()},
        )

    def torchs(self, way: _Compile) -> Ready:
        made = build_positions("sinusoidal", self.positions, width=self.weight.shape[1], heads=1)
        assert made.sinusoids_XD is not None
        sinusoids = made.sinusoids_XD.to(self.grad.dtype)
        scale = self.scale

        def exact(weight: Tensor) -> Tensor:
            return functional.embedding(self.ids, weight) * scale + sinusoids

        def dropping(weight: Tensor) -> Tensor:
            return functional.dropout(exact(weight), _SHARE)

        inputs = [self.weight.detach().requires_grad_()]
        out = way(exact)(*inputs)
        (grad_weight,) = torch.autograd.grad(out, inputs, self.grad)
        runs = by_autograd(way(dropping), inputs, [self.grad])
        return Ready(
            runs={name: runs[name] for name in ("forward", "backward")},
            outcome={"out": out.detach(), "grad_weight": grad_weight},
        )


def _embedding(setting: Setting) -> Contest:
    side, width = setting.row.source, setting.model.width
    problem = _Embed(
        ids=side.ids,
        positions=side.positions,
        weight=setting.draw(setting.vocabulary, width),
        grad=setting.draw(setting.places, width),
        seed=setting.seed,
    )
    one = problem.grad.numel() * problem.grad.element_size()
    rows = len(torch.unique(side.ids)) * width
    return Contest(
        kernel=ELEMENTWISE[3],
        size=setting.size,
        # Rows that occur are read in half precision; their gradients are read and written in fp32.
        least_bytes={"forward": one + 2 * rows, "backward": one + 8 * rows},
        contenders=[
            Contender(name=OURS, prepare=partial(problem.ours, sorts=True)),
            Contender(name=f"{OURS}, ids sorted beforehand", prepare=partial(problem.ours, sorts=False)),
            *_contenders(problem.torchs, _WAYS),
        ],
    )
