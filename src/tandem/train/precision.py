"""The numbers that a model multiplies in, and the loss scale that keeps the small ones alive."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from tandem.errors import TandemError

__all__ = ["Precision", "PrecisionName", "SkipWatch"]

PrecisionName: TypeAlias = Literal["auto", "fp32", "tf32", "bf16", "fp16", "fp8"]

FIRST_SCALE = 2.0**16
GROWTH_STEPS = 2000
"""Good steps in a row after which the scale is doubled."""
SMALLEST_SCALE = 2.0**-10
"""A true gradient overflows fp16 at no such scale: what still does is broken."""
SKIPPED_LIMIT = 50

FP8_CAPABILITY = (8, 9)
"""Of the first GPUs that multiply in fp8."""

# Outside of the fused linear maps, fp8 is bf16.
_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}


class Precision:
    """How a model computes on a device; weights, gradients and moments are fp32 in all of them.

    Under fp16 the loss is multiplied by a scale that halves when a gradient overflows. It lives on the device, so that
    no step waits for it; elsewhere it is 1 for ever.
    """

    def __init__(
        self, name: PrecisionName, device: torch.device, *, growth_steps: int = GROWTH_STEPS
    ) -> None:
        self.name = _resolve(name, device)
        if device.type == "cuda":
            torch.set_float32_matmul_precision("high" if self.name == "tf32" else "highest")
        self._device = device
        self._growth_steps = growth_steps
        self._is_scaled = self.name == "fp16"
        self.scale = torch.tensor(FIRST_SCALE if self._is_scaled else 1.0, device=device)
        self._good_steps = torch.zeros((), device=device)

    @property
    def maybe_scale(self) -> Tensor | None:
        """The scale; None where it is 1 for ever."""
        return self.scale if self._is_scaled else None

    def autocast(self) -> AbstractContextManager[object]:
        """Around a forward pass and its loss."""
        if self.name not in _AUTOCAST:
            return nullcontext()
        return torch.autocast(self._device.type, dtype=_AUTOCAST[self.name])

    def update(self, skipped: Tensor) -> None:
        """Note on the device whether the step was skipped (1) or good (0)."""
        if not self._is_scaled:
            return
        good = (self._good_steps + 1) * (1 - skipped)
        grown = (good >= self._growth_steps).float()
        self.scale.mul_(1 - skipped / 2).mul_(1 + grown)
        self._good_steps.copy_(good * (1 - grown))

    def state_tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must keep: nothing where there is no scale."""
        if not self._is_scaled:
            return {}
        return {"loss_scale.value": self.scale, "loss_scale.good_steps": self._good_steps}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what `state_tensors` gave; other names are left alone."""
        for name, held in self.state_tensors().items():
            if name not in tensors:
                raise TandemError(
                    f"The checkpoint has no {name}: it was not trained in fp16; resume it in its own train.precision."
                )
            held.copy_(tensors[name])


class SkipWatch:
    """Ends a run whose gradients stay broken; to be told of every step, in order."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def note(self, *, step: int, skipped: bool, loss_scale: float) -> None:
        """Count a step; raises TandemError when it is one too many, on every rank alike."""
        self._in_a_row = self._in_a_row + 1 if skipped else 0
        if loss_scale < SMALLEST_SCALE:
            raise TandemError(
                f"The loss scale fell to {loss_scale:g} at step {step}, since gradients overflow fp16 at any scale: "
                "begin another run (--run) with train.precision bf16 or fp32, or a lower optim.learning_rate."
            )
        if self._in_a_row >= SKIPPED_LIMIT:
            raise TandemError(
                f"The last {self._in_a_row} steps up to step {step} were skipped, as their gradients were not finite: "
                "begin another run (--run) with a lower optim.learning_rate, a longer optim.warmup_steps or "
                "train.precision fp32."
            )


def _resolve(name: PrecisionName, device: torch.device) -> str:
    on_gpu = device.type == "cuda"
    if name == "tf32" and not on_gpu:
        raise TandemError("train.precision tf32 is of GPUs, but this is a CPU: make it fp32 or auto.")
    if name == "fp8":
        _check_fp8(device)
    if name != "auto":
        return name
    if not on_gpu:
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


def _check_fp8(device: torch.device) -> None:
    wanted = "train.precision fp8 is of GPUs with compute capability 8.9 or more"
    if device.type != "cuda":
        raise TandemError(f"{wanted}, but this is a CPU: make it fp32 or auto.")
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) < FP8_CAPABILITY:
        raise TandemError(f"{wanted}, but this one has {major}.{minor}: make it bf16 or auto.")
