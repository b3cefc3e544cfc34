"""Forward and backward of one micro-batch: the plain way, which works everywhere."""

from contextlib import nullcontext
from typing import Protocol

import torch
from torch import Tensor

from tandem.data.batches.batch import Batch
from tandem.model.transformer import Transformer
from tandem.parallel.buckets import GradientBuckets
from tandem.telemetry.clock import PhaseClock
from tandem.train.loss import summed_loss
from tandem.train.precision import Precision
from tandem.train.tokens import to_tokens

__all__ = ["Pass", "PlainPass"]


class Pass(Protocol):
    """Learns from micro-batches."""

    def __call__(
        self, batch: Batch[Tensor], *, seed: int, factor: Tensor, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Add the gradient of the loss sum times the factor to the buckets; with the last one they are sent.

        Returns the sums of loss and negative log-likelihood. The seed says what dropout drops.
        """
        ...


class PlainPass:
    """PyTorch's own operations under autocast, in whatever layout the batch has."""

    def __init__(
        self,
        model: Transformer,
        *,
        precision: Precision,
        buckets: GradientBuckets,
        smoothing: float,
        clock: PhaseClock,
    ) -> None:
        self._model = model
        self._precision = precision
        self._buckets = buckets
        self._smoothing = smoothing
        self._clock = clock
        self._device = model.target_embedding.device

    def __call__(
        self, batch: Batch[Tensor], *, seed: int, factor: Tensor, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Forward, then backward."""
        torch.manual_seed(seed)
        with self._clock.phase("forward"):
            held = batch.map(lambda tensor: tensor.to(self._device, non_blocking=True))
            with self._precision.autocast():
                states = self._model(*to_tokens(held))
                loss, nll = summed_loss(
                    states,
                    self._model.output_weight,
                    held.labels,
                    pad=self._model.pad,
                    smoothing=self._smoothing,
                )
        with self._clock.phase("backward"), self._buckets.sending() if last else nullcontext():
            # Not backward(factor), to the bit the same: torch loads all of sympy to compare the two's shapes.
            (loss * factor).backward()  # type: ignore[no-untyped-call]
        return loss.detach(), nll
