"""Muon: a matrix moves along its first moment made orthogonal, so that all of its directions learn alike."""

# Shapes: G matrices of one shape, R rows, C columns, S the shorter of the two.

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from tandem.train.adam import SAME_LENGTH, DirectedSteps

__all__ = ["Muon", "orthogonalize_"]

_POLYNOMIAL = (3.4445, -4.7750, 2.0315)
"""Of Newton's and Schulz's iteration: these numbers bring small singular values near one soonest (K. Jordan, 2024)."""
_ITERATIONS = 5
_EPSILON = 1e-7
_USUAL_STEP = 0.2
"""Root mean square of Adam's steps, in learning rates: with it, one learning rate serves both (Moonlight, 2025)."""

Views: TypeAlias = Callable[[Tensor], Mapping[Tensor, Tensor]]
"""Finds each parameter's part of a flat tensor."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """Matrices of one shape: where each lies in a flat tensor of moments, and in one of directions."""

    shape: torch.Size
    moments: list[Tensor]
    directions: list[Tensor]


class Muon:
    """Chooses the steps of matrices from the first moments that Adam keeps, so that it has no state of its own."""

    def __init__(
        self,
        matrices: Mapping[Tensor, int],
        *,
        views: Views,
        gradients: Tensor,
        moments: Tensor,
        beta1: float,
    ) -> None:
        """By parameter, how many matrices it holds, one below the other; gradients and moments are flat."""
        self._gradients, self._moments, self._beta1 = gradients, moments, beta1
        # It first serves to lay out the lengths.
        self._ahead = torch.zeros_like(moments)
        directions = torch.zeros_like(moments, dtype=_number_type(moments.device))
        ahead, directed = views(self._ahead), views(directions)
        groups: dict[torch.Size, _Group] = {}
        for parameter, count in matrices.items():
            for one, other in zip(
                ahead[parameter].chunk(count), directed[parameter].chunk(count), strict=True
            ):
                group = groups.setdefault(one.shape, _Group(shape=one.shape, moments=[], directions=[]))
                group.moments.append(one)
                group.directions.append(other)
                # The numbers of an orthogonal matrix have a root mean square of one by the root of its longer side.
                one.fill_(_USUAL_STEP * max(one.shape) ** 0.5)
        self._groups = tuple(groups.values())
        self._steps = DirectedSteps(directions=directions, lengths=self._ahead[::SAME_LENGTH].clone())

    def steps(self, divisor: Tensor) -> DirectedSteps:
        """Where the matrices go, by gradients that have still to be divided."""
        # Nesterov's look ahead, from moments that have not heard of these gradients.
        kept = self._beta1**2
        torch.mul(self._gradients, (1 - kept) / divisor, out=self._ahead)
        self._ahead.add_(self._moments, alpha=kept)
        for group in self._groups:
            held_GRC = torch.empty(
                (len(group.moments), *group.shape), dtype=self._steps.directions.dtype, device=divisor.device
            )
            torch._foreach_copy_(held_GRC.unbind(), group.moments)
            torch._foreach_copy_(group.directions, orthogonalize_(held_GRC).unbind())
        return self._steps


def orthogonalize_(x_GRC: Tensor) -> Tensor:
    """Near the orthogonal matrix that is nearest to each of these, which are spent: singular values of 0.7 to 1.2."""
    first, third, fifth = _POLYNOMIAL
    is_tall = x_GRC.shape[-2] > x_GRC.shape[-1]
    norm_G11 = x_GRC.norm(dim=(-2, -1), keepdim=True, dtype=torch.float32)
    x_GRC.mul_(1 / (norm_G11 + _EPSILON))
    for _ in range(_ITERATIONS):
        square_GSS = x_GRC.mT @ x_GRC if is_tall else x_GRC @ x_GRC.mT
        higher_GSS = torch.baddbmm(square_GSS, square_GSS, square_GSS, beta=third, alpha=fifth)
        factors = (x_GRC, higher_GSS) if is_tall else (higher_GSS, x_GRC)
        x_GRC = torch.baddbmm(x_GRC, *factors, beta=first)
    return x_GRC


def _number_type(device: torch.device) -> torch.dtype:
    # No half precision but bf16: moments are far below what fp16 can tell from zero.
    fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if fast else torch.float32
