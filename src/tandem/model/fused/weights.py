"""Weights in half precision for matrix products, and the places where their gradients are summed in fp32."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from tandem.kernels.columns import add_column_sums

__all__ = ["HalfLinear", "HalfWeights", "OnGradient", "Weight", "add_product"]

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
    """A linear map whose gradients go straight to where they are summed."""

    weight: Weight
    bias: Weight

    def with_bias(self, x_ND: Tensor) -> Tensor:
        """The map as it is."""
        return torch.addmm(self.bias.half, x_ND, self.weight.half.T)

    def rectified(self, x_ND: Tensor) -> Tensor:
        """The map with its bias, and ReLU on the way out."""
        rectify = torch.ops.aten._addmm_activation  # noqa: SLF001  (PyTorch has no public name for it)
        rectified: Tensor = rectify(self.bias.half, x_ND, self.weight.half.T)
        return rectified

    def without_bias(self, x_ND: Tensor) -> Tensor:
        """The product alone: the next kernel adds the bias."""
        return x_ND @ self.weight.half.T

    def back(self, grad_NF: Tensor) -> Tensor:
        """What the input's gradient is."""
        return grad_NF @ self.weight.half

    def learn(self, grad_NF: Tensor, x_ND: Tensor, *, bias: bool) -> None:
        """Add the gradients of the weight and, where no other kernel does that, of the bias."""
        add_product(self.weight.gradient, grad_NF.T, x_ND)
        self.weight.complete()
        if bias:
            add_column_sums(grad_NF, self.bias.gradient)
            self.bias.complete()


class HalfWeights:
    """Copies of all parameters of a model in half precision, to be refreshed before each pass."""

    def __init__(self, model: nn.Module, dtype: torch.dtype, on_gradient: OnGradient) -> None:
        self._weights: dict[Tensor, Weight] = {
            parameter: Weight(
                parameter=parameter,
                half=torch.empty_like(parameter, dtype=dtype, requires_grad=False),
                on_gradient=on_gradient,
            )
            for parameter in model.parameters()
        }

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the weights as they are now."""
        torch._foreach_copy_([each.half for each in self._weights.values()], list(self._weights))

    def of(self, parameter: Tensor) -> Weight:
        """The weight that stands for a parameter."""
        return self._weights[parameter]

    def linear(self, module: nn.Linear) -> HalfLinear:
        """The map that stands for a module."""
        return HalfLinear(weight=self.of(module.weight), bias=self.of(module.bias))


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add a product of half-precision matrices to an fp32 one; nothing is rounded to half in between."""
    if total.is_cuda:
        torch.addmm(total, left, right, out_dtype=torch.float32, out=total)
    else:
        total.addmm_(left.float(), right.float())
