"""Weights in half precision and fp8 for matrix products, and the places where their gradients are summed in fp32."""

# Shapes: N places, D width of what goes in, F width of what comes out.

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import torch
from torch import Tensor, nn

from tandem.kernels import activation
from tandem.kernels.columns import add_column_sums
from tandem.kernels.quantize import Quarter, quantize, quantize_gradient_, quantize_rectified_
from tandem.kernels.quantize_weights import QuarterMatrices, QuarterMatrix

__all__ = [
    "HalfLinear",
    "HalfWeights",
    "OnGradient",
    "QuarterLinear",
    "QuarterWeights",
    "Weight",
    "add_product",
]

OnGradient: TypeAlias = Callable[[Tensor], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weight:
    """A parameter, its copy in half precision, and whom to tell when its gradient is complete."""

    parameter: Tensor
    half: Tensor
    on_gradient: OnGradient

    @property
    def gradient(self) -> Tensor:
        """Where the gradient is added up, in fp32."""
        gradient = self.parameter.grad
        # A bucket that was sent already takes no more: what comes for it goes nowhere.
        return torch.zeros_like(self.parameter) if gradient is None else gradient

    def complete(self) -> None:
        """Say that no more gradient comes for it in this backward pass."""
        self.on_gradient(self.parameter)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfLinear:
    """A linear map whose gradients go straight to where they are summed; it has no use for fp8."""

    weight: Weight
    bias: Weight

    def with_bias(self, x_ND: Tensor, _: Quarter | None) -> Tensor:
        """The map as it is."""
        return torch.addmm(self.bias.half, x_ND, self.weight.half.T)

    def rectified(self, x_ND: Tensor, _: Quarter | None) -> tuple[Tensor, Quarter | None]:
        """The map with its bias, and ReLU on the way out."""
        rectify = torch.ops.aten._addmm_activation  # noqa: SLF001  (PyTorch has no public name for it)
        return rectify(self.bias.half, x_ND, self.weight.half.T), None

    def without_bias(self, x_ND: Tensor, _: Quarter | None) -> Tensor:
        """The product alone: the next kernel adds the bias."""
        return x_ND @ self.weight.half.T

    def back(self, grad_NF: Tensor, _: Quarter | None) -> Tensor:
        """What the input's gradient is."""
        return grad_NF @ self.weight.half

    def unrectified(self, grad_NF: Tensor, active_NF: Tensor, seed: Tensor) -> Quarter | None:
        """The gradient before ReLU, in place; adds the bias's."""
        activation.backward(
            grad_NF,
            active_NF,
            kind="relu",
            gated=False,
            share=0.0,
            seed=seed,
            site=0,
            bias_grad_I=self.bias.gradient,
        )
        return None

    def learn_bias(self, grad_NF: Tensor) -> Quarter | None:
        """Add the bias's gradient, where no other kernel does that."""
        add_column_sums(grad_NF, self.bias.gradient)
        self.bias.complete()
        return None

    def learn(self, grad_NF: Tensor, x_ND: Tensor) -> None:
        """Add the weight's gradient."""
        add_product(self.weight.gradient, grad_NF.T, x_ND)
        self.weight.complete()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuarterLinear(HalfLinear):
    """A linear map that multiplies in fp8, forward and back; the weight's gradient is made in half precision.

    Whoever has made a tensor in fp8 already gives it along.
    """

    matrix: QuarterMatrix

    def with_bias(self, x_ND: Tensor, quarter: Quarter | None) -> Tensor:
        """The map as it is."""
        return _scaled_product(
            quarter or quantize(x_ND), self.matrix.straight, like=self.bias.half, bias=True
        )

    def rectified(self, x_ND: Tensor, quarter: Quarter | None) -> tuple[Tensor, Quarter | None]:
        """The map with its bias and ReLU, also in fp8."""
        active_NF = self.with_bias(x_ND, quarter)
        return active_NF, quantize_rectified_(active_NF)

    def without_bias(self, x_ND: Tensor, quarter: Quarter | None) -> Tensor:
        """The product alone: the next kernel adds the bias."""
        return _scaled_product(quarter or quantize(x_ND), self.matrix.straight, like=self.bias.half)

    def back(self, grad_NF: Tensor, quarter: Quarter | None) -> Tensor:
        """What the input's gradient is."""
        return _scaled_product(quarter or quantize(grad_NF), self.matrix.turned, like=self.bias.half)

    def unrectified(self, grad_NF: Tensor, active_NF: Tensor, _: Tensor) -> Quarter | None:
        """The gradient before ReLU, in place and in fp8; adds the bias's."""
        return quantize_gradient_(grad_NF, active_NF, sums_C=self.bias.gradient)

    def learn_bias(self, grad_NF: Tensor) -> Quarter | None:
        """Add the bias's gradient, where no other kernel does that; the gradient in fp8."""
        quarter = quantize_gradient_(grad_NF, None, sums_C=self.bias.gradient)
        self.bias.complete()
        return quarter


class HalfWeights:
    """All weights of a model, with their copies in half precision."""

    def __init__(self, halves: Mapping[Tensor, Tensor], on_gradient: OnGradient) -> None:
        """The copies by parameter; whoever changes a parameter renews its copy."""
        self._weights = {
            parameter: Weight(parameter=parameter, half=half, on_gradient=on_gradient)
            for parameter, half in halves.items()
        }

    def renew(self) -> None:
        """Make what is made of the half copies: nothing."""

    def of(self, parameter: Tensor) -> Weight:
        """The weight that stands for a parameter."""
        return self._weights[parameter]

    def linear(self, module: nn.Linear) -> HalfLinear:
        """The map that stands for a module."""
        return HalfLinear(weight=self.of(module.weight), bias=self.of(module.bias))


class QuarterWeights(HalfWeights):
    """All weights of a model, with the matrices of its linear maps in fp8 besides."""

    def __init__(
        self, halves: Mapping[Tensor, Tensor], on_gradient: OnGradient, maps: Iterable[nn.Linear]
    ) -> None:
        """`renew` before every forward pass, as the half copies may have changed."""
        super().__init__(halves, on_gradient)
        by_storage = sorted((self.of(each.weight) for each in maps), key=_storage)
        groups = [list(group) for _, group in groupby(by_storage, key=_storage)]
        self._all = [QuarterMatrices([weight.half for weight in group]) for group in groups]
        self._matrices = {
            weight.parameter: matrix
            for group, held in zip(groups, self._all, strict=True)
            for weight, matrix in zip(group, held.matrices, strict=True)
        }

    def renew(self) -> None:
        """Make the fp8 matrices of the half ones."""
        for matrices in self._all:
            matrices.renew()

    def linear(self, module: nn.Linear) -> HalfLinear:
        """The map that stands for a module."""
        matrix = self._matrices[module.weight]
        return QuarterLinear(weight=self.of(module.weight), bias=self.of(module.bias), matrix=matrix)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add a product of half-precision matrices to a wider one; nothing is rounded to half in between."""
    if total.is_cuda and left.dtype != total.dtype:
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total.addmm_(left.to(total.dtype), right.to(total.dtype))


def _scaled_product(x: Quarter, matrix: Quarter, *, like: Tensor, bias: bool = False) -> Tensor:
    """Rows times the rows of a matrix; `like` says the type of the result, and may be added as its bias."""
    # Sums of so few products lose less in fast accumulation than their factors lost in fp8, and PyTorch's kernels for
    # scales by row are fast with it alone.
    return torch._scaled_mm(  # noqa: SLF001  (PyTorch has no public name for it)
        x.values,
        matrix.values.T,
        scale_a=x.scales,
        scale_b=matrix.scales.T,
        bias=like if bias else None,
        out_dtype=like.dtype,
        use_fast_accum=True,
    )


def _storage(weight: Weight) -> int:
    return weight.half.untyped_storage().data_ptr()
