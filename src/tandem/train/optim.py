"""AdamW or Muon on gradients that lie in buckets: unscaled, clipped, checked and applied on the device."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tandem.config import OptimSection
from tandem.errors import TandemError
from tandem.model.build import matrices_of
from tandem.parallel.buckets import GradientBuckets
from tandem.train.adam import build_adam
from tandem.train.muon import Muon

__all__ = ["Applied", "Optimizer"]

_CLIP_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Applied:
    """What became of the gradients, as 0-dim tensors on the device."""

    norm: Tensor
    """Of the true gradient, before clipping."""
    skipped: Tensor
    """1 where it was not finite and no weight was changed, else 0."""


class Optimizer:
    """Fused AdamW with clipping and, where the recipe has them, Muon's steps and a running average of the weights.

    Weight decay is for matrices, embeddings among them; biases and norms have none.
    """

    def __init__(self, model: nn.Module, section: OptimSection, buckets: GradientBuckets) -> None:
        """The model's weights move into one flat tensor that is laid out like the buckets."""
        self._parameters = dict(model.named_parameters())
        self._buckets = buckets
        self._clip_norm = section.clip_norm
        self._weight_decay = section.weight_decay
        self._ema_decay = section.ema_decay
        self._weights = torch.zeros_like(buckets.gradients)
        for parameter, view in buckets.views(self._weights).items():
            parameter.data = view.copy_(parameter.data)
        self._adam = build_adam(self._weights, buckets.gradients, section)
        self._halves: Tensor | None = None
        self._muon: Muon | None = None
        if section.algorithm == "muon":
            self._muon = Muon(
                matrices_of(model),
                views=buckets.views,
                gradients=buckets.gradients,
                moments=self._adam.first,
                beta1=section.beta1,
            )
        self._average = self._weights.clone() if self._ema_decay else None
        self._averages = {} if self._average is None else self._named(self._average)

    @torch.no_grad()
    def step(self, *, step: int, learning_rate: float, scale: Tensor) -> Applied:
        """Apply gradients that were made of a loss times `scale`; all of it is queued, nothing waited for."""
        norm = self._buckets.norm() / scale
        skipped = (~norm.isfinite()).float()
        excess = ((norm + _CLIP_EPSILON) / self._clip_norm).clamp(min=1.0) if self._clip_norm else 1.0
        if self._weight_decay:
            matrices: list[Tensor] = [each for each in self._parameters.values() if each.ndim > 1]
            torch._foreach_mul_(matrices, 1 - learning_rate * self._weight_decay * (1 - skipped))
        divisor = scale * excess
        self._adam.step(
            learning_rate=learning_rate,
            divisor=divisor,
            skipped=skipped,
            halves=self._halves,
            directed=None if self._muon is None else self._muon.steps(divisor),
        )
        if self._average is not None:
            # An average over few steps must not remember the random weights that it began with.
            keep = min(self._ema_decay, (1 + step) / (10 + step))
            self._average.lerp_(self._weights, 1 - keep)
        return Applied(norm=norm, skipped=skipped)

    def weights_for_translation(self) -> dict[str, Tensor]:
        """By parameter name: the averages where there are any, else the weights; not copies."""
        return self._averages or {name: value.detach() for name, value in self._parameters.items()}

    def replicated(self) -> dict[str, Tensor]:
        """What must be equal on all ranks: the trained weights, and the second moments that scale the codec."""
        moments = self._named(self._adam.second)
        return self._named(self._weights) | {f"second_moment.{name}": each for name, each in moments.items()}

    @property
    def second_moment(self) -> Tensor:
        """Adam's second moments of all weights, laid out as the gradients are."""
        return self._adam.second

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
        moments = {"first_moment": self._adam.first, "second_moment": self._adam.second}
        tensors = {
            f"{moment}.{name}": tensor
            for moment, flat in moments.items()
            for name, tensor in self._named(flat).items()
        }
        # Of the weights themselves a checkpoint would otherwise have only the average.
        raw = {f"weight.{name}": self._parameters[name].detach() for name in self._averages}
        return tensors | raw | {"steps": self._adam.steps}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor], *, weights: Mapping[str, Tensor]) -> None:
        """Go on from what `state_tensors` and `weights_for_translation` gave, to the bit; the model's weights too."""
        _fill(self.weights_for_translation(), weights)
        _fill(self.state_tensors(), tensors)
        if self._halves is not None:
            self._halves.copy_(self._weights)

    def halves(self, dtype: torch.dtype) -> dict[Tensor, Tensor]:
        """By parameter: copies in half precision, which every step from now on renews."""
        if self._halves is None or self._halves.dtype != dtype:
            self._halves = self._weights.to(dtype)
        return self._buckets.views(self._halves)

    def drop_halves(self) -> None:
        """Keep no copies in half precision any more."""
        self._halves = None

    def _named(self, flat: Tensor) -> dict[str, Tensor]:
        views = self._buckets.views(flat)
        return {name: views[parameter] for name, parameter in self._parameters.items()}

    def _swap(self) -> None:
        for name, average in self._averages.items():
            parameter = self._parameters[name]
            parameter.data, average.data = average.data, parameter.data


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
