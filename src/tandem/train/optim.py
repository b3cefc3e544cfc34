"""AdamW on gradients that lie in buckets: unscaled, clipped, checked and applied in one pass on the device."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tandem.config import OptimSection
from tandem.errors import TandemError
from tandem.parallel.buckets import GradientBuckets

__all__ = ["Applied", "Optimizer"]

_MOMENTS = {"first_moment": "exp_avg", "second_moment": "exp_avg_sq"}
"""Our names in a checkpoint, and torch's."""
_CLIP_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Applied:
    """What became of the gradients, as 0-dim tensors on the device."""

    norm: Tensor
    """Of the true gradient, before clipping."""
    skipped: Tensor
    """1 where it was not finite and no weight was changed, else 0."""


class Optimizer:
    """Fused AdamW with clipping and, where the recipe has it, a running average of the weights.

    Weight decay is for matrices, embeddings among them; biases and norms have none.
    """

    def __init__(self, model: nn.Module, section: OptimSection) -> None:
        self._parameters = dict(model.named_parameters())
        self._clip_norm = section.clip_norm
        self._decay = section.ema_decay
        self._adam = torch.optim.AdamW(
            _groups(self._parameters, section.weight_decay),
            lr=0.0,
            betas=(section.beta1, section.beta2),
            eps=section.epsilon,
            fused=True,
        )
        # Made now, so that the first step needs no more memory than any other.
        for parameter in self._parameters.values():
            steps = torch.zeros((), dtype=torch.float32, device=parameter.device)
            moments = {theirs: torch.zeros_like(parameter) for theirs in _MOMENTS.values()}
            self._adam.state[parameter] = {"step": steps, **moments}
        kept = self._parameters if self._decay else {}
        self._averages = {name: parameter.detach().clone() for name, parameter in kept.items()}

    @torch.no_grad()
    def step(self, buckets: GradientBuckets, *, step: int, learning_rate: float, scale: Tensor) -> Applied:
        """Apply gradients that were made of a loss times `scale`; all of it is queued, nothing waited for."""
        norm = buckets.norm() / scale
        skipped = (~norm.isfinite()).float()
        excess = ((norm + _CLIP_EPSILON) / self._clip_norm).clamp(min=1.0) if self._clip_norm else 1.0
        # The fused kernel divides by the one and does nothing where the other is 1: torch's own loss scaler uses it so.
        self._adam.grad_scale, self._adam.found_inf = scale * excess, skipped  # type: ignore[attr-defined]
        for group in self._adam.param_groups:
            group["lr"] = learning_rate
        self._adam.step()
        if self._averages:
            # An average over few steps must not remember the random weights that it began with.
            keep = min(self._decay, (1 + step) / (10 + step))
            torch._foreach_lerp_(list(self._averages.values()), list(self._parameters.values()), 1 - keep)
        return Applied(norm=norm, skipped=skipped)

    def weights_for_translation(self) -> dict[str, Tensor]:
        """By parameter name: the averages where there are any, else the weights; not copies."""
        return self._averages or {name: value.detach() for name, value in self._parameters.items()}

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside the block the model has the weights that translate."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def state_tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must keep besides `weights_for_translation`; not copies."""
        named = self._parameters.items()
        state = self._adam.state
        tensors = {
            f"{ours}.{name}": state[parameter][theirs]
            for ours, theirs in _MOMENTS.items()
            for name, parameter in named
        }
        # Of the weights themselves a checkpoint would otherwise have only the average.
        raw = {f"weight.{name}": self._parameters[name].detach() for name in self._averages}
        return tensors | raw | {"steps": next(iter(state.values()))["step"]}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor], *, weights: Mapping[str, Tensor]) -> None:
        """Go on from what `state_tensors` and `weights_for_translation` gave, to the bit; the model's weights too."""
        _fill(self.weights_for_translation(), weights)
        _fill(self.state_tensors(), tensors)
        for held in self._adam.state.values():
            held["step"].copy_(tensors["steps"])

    def _swap(self) -> None:
        for name, average in self._averages.items():
            parameter = self._parameters[name]
            parameter.data, average.data = average.data, parameter.data


def _groups(parameters: Mapping[str, nn.Parameter], decay: float) -> list[dict[str, object]]:
    matrices = [parameter for parameter in parameters.values() if parameter.ndim > 1]
    vectors = [parameter for parameter in parameters.values() if parameter.ndim <= 1]
    groups = ((matrices, decay), (vectors, 0.0))
    return [{"params": members, "weight_decay": rate} for members, rate in groups if members]


def _fill(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    for name, tensor in own.items():
        if name not in given:
            raise TandemError(
                f"The checkpoint has no {name}: it is of a run with another model or optim section."
            )
        if given[name].shape != tensor.shape:
            raise TandemError(
                f"{name} of the checkpoint is {list(given[name].shape)}, but the recipe's model wants "
                f"{list(tensor.shape)}: give the recipe that the checkpoint was made with."
            )
        tensor.copy_(given[name])
