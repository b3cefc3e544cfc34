"""Adam over all weights as one flat tensor: PyTorch's fused one, or on a GPU a kernel that also keeps half weights."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from tandem.config import OptimSection

__all__ = ["SAME_LENGTH", "Adam", "DirectedSteps", "build_adam"]

SAME_LENGTH = 16
"""Neighbouring weights that share the length of a directed step."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DirectedSteps:
    """Steps of weights for which Adam keeps moments, but does not choose the step."""

    directions: Tensor
    """Laid out as the weights are, which move against them."""
    lengths: Tensor
    """fp32, one for SAME_LENGTH weights, in learning rates; where it is 0, the step is Adam's."""


class Adam(Protocol):
    """Both moments of every weight, and how many steps went into them."""

    first: Tensor
    second: Tensor
    steps: Tensor
    """0-dim fp32, on the device, as it does not count steps that were skipped."""

    def step(
        self,
        *,
        learning_rate: float,
        divisor: Tensor,
        skipped: Tensor,
        halves: Tensor | None,
        directed: DirectedSteps | None = None,
    ) -> None:
        """Divide the gradients and apply them, unless `skipped` is 1; new weights also go to `halves`."""
        ...


def build_adam(weights: Tensor, gradients: Tensor, section: OptimSection) -> Adam:
    """For flat fp32 weights and gradients that stay where they are; the kernel where it can be compiled."""
    if weights.is_cuda and find_spec("triton") is not None:
        adam = _KernelAdam(weights, gradients, section)
        if adam.works():
            return adam
    return _TorchAdam(weights, gradients, section)


class _TorchAdam:
    def __init__(self, weights: Tensor, gradients: Tensor, section: OptimSection) -> None:
        self.first, self.second = torch.zeros_like(weights), torch.zeros_like(weights)
        self.steps = torch.zeros((), dtype=torch.float32, device=weights.device)
        self._weights, self._gradients = weights, gradients
        self._betas, self._epsilon = (section.beta1, section.beta2), section.epsilon

    @torch.no_grad()
    def step(
        self,
        *,
        learning_rate: float,
        divisor: Tensor,
        skipped: Tensor,
        halves: Tensor | None,
        directed: DirectedSteps | None = None,
    ) -> None:
        before = None if directed is None else self._weights.clone()
        # As a function: the class imports torch's compiler, which takes as long as all other imports.
        adamw(
            [self._weights],
            [self._gradients],
            [self.first],
            [self.second],
            [],
            [self.steps],
            fused=True,
            # The fused kernel divides by the one and does nothing where the other is 1: torch's loss scaler uses it so.
            grad_scale=divisor,
            found_inf=skipped,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=learning_rate,
            weight_decay=0.0,
            eps=self._epsilon,
            maximize=False,
        )
        if directed is not None and before is not None:
            lengths = directed.lengths.repeat_interleave(SAME_LENGTH)
            moved = before - learning_rate * lengths * directed.directions
            moved = torch.where(skipped > 0, before, moved)
            self._weights.copy_(torch.where(lengths > 0, moved, self._weights))
        if halves is not None:
            halves.copy_(self._weights)


class _KernelAdam:
    def __init__(self, weights: Tensor, gradients: Tensor, section: OptimSection) -> None:
        self.first, self.second = torch.zeros_like(weights), torch.zeros_like(weights)
        self.steps = torch.zeros((), dtype=torch.float32, device=weights.device)
        self._weights, self._gradients = weights, gradients
        self._betas, self._epsilon = (section.beta1, section.beta2), section.epsilon

    def works(self) -> bool:
        """Try a step that changes nothing: Triton may lack a compiler here, or not know this GPU."""
        one = torch.ones((), device=self._weights.device)
        try:
            self.step(learning_rate=0.0, divisor=one, skipped=one, halves=None)
        except Exception:  # noqa: BLE001  (compilers fail in many ways, and PyTorch's own does as well)
            return False
        return True

    def step(
        self,
        *,
        learning_rate: float,
        divisor: Tensor,
        skipped: Tensor,
        halves: Tensor | None,
        directed: DirectedSteps | None = None,
    ) -> None:
        # Only now: where there is no GPU, there may be no Triton.
        from tandem.kernels.adam import adam_  # noqa: PLC0415

        self.steps += 1 - skipped
        # In double precision: one less a power of almost one has few digits left.
        beta1, beta2 = self._betas
        # Before the first step that counts, any number will do, but for one that is divided by.
        steps = self.steps.double().clamp(min=1)
        corrections = 1 - beta1**steps, (1 - beta2**steps).sqrt()
        rate = torch.full_like(divisor, learning_rate)
        adam_(
            self._weights,
            self._gradients,
            self.first,
            self.second,
            numbers=torch.stack([rate, *(each.float() for each in corrections), divisor, skipped]),
            betas=self._betas,
            epsilon=self._epsilon,
            halves=halves,
            directions=None if directed is None else directed.directions,
            lengths=None if directed is None else directed.lengths,
        )
