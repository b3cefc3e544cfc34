"""Forward and backward of one micro-batch on a GPU: fused kernels, replayed as CUDA graphs where shapes allow."""

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from tandem.data.batches.batch import Batch, PackedBatch
from tandem.model.fused.transformer import FusedTransformer
from tandem.model.tokens import PackedTokens
from tandem.model.transformer import Transformer
from tandem.parallel.buckets import GradientBuckets
from tandem.telemetry.clock import PhaseClock
from tandem.train.fused_loss import fused_loss
from tandem.train.tokens import to_tokens

__all__ = ["FusedPass", "GraphedPass"]


class FusedPass:
    """Fused kernels, launched one by one: for packed batches of any size."""

    def __init__(
        self,
        model: Transformer,
        *,
        dtype: torch.dtype,
        buckets: GradientBuckets,
        smoothing: float,
        clock: PhaseClock,
    ) -> None:
        self._fused = FusedTransformer(model, dtype=dtype, on_gradient=buckets.note)
        self._pad = model.pad
        self._smoothing = smoothing
        self.device = model.target_embedding.device
        self.buckets = buckets
        self.clock = clock

    def __call__(
        self, batch: Batch[Tensor], *, seed: int, factor: Tensor, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Forward, then backward."""
        with self.clock.phase("forward"):
            held = batch.map(lambda tensor: tensor.to(self.device, non_blocking=True))
            loss, nll = self.forward(held, seed=_seed_tensor(seed).to(self.device), factor=factor)
        with self.clock.phase("backward"), self.buckets.sending() if last else nullcontext():
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), nll

    def forward(self, batch: Batch[Tensor], *, seed: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        """Sums of loss and negative log-likelihood; the loss is ready for backward."""
        source, target = to_tokens(batch)
        assert isinstance(source, PackedTokens) and isinstance(target, PackedTokens)  # noqa: PT018  (not a test)
        states = self._fused(source, target, seed=seed)
        output = self._fused.output
        loss, nll, _ = fused_loss(
            states,
            output.half,
            batch.labels,
            pad=self._pad,
            smoothing=self._smoothing,
            factor=factor,
            weight_grad_VD=output.gradient,
        )
        return loss, nll


class GraphedPass:
    """A fused pass recorded once and replayed for every batch of the same shape: the host only says go."""

    def __init__(self, eager: FusedPass, example: PackedBatch[Tensor]) -> None:
        """Records a pass over the example, whose gradients are cleared; any finite batch of the shape will do."""
        self._eager = eager
        device = eager.device
        self._batch = example.map(lambda tensor: tensor.to(device))
        self._seed = torch.zeros(2, dtype=torch.int32, device=device)
        self._factor = torch.ones((), device=device)
        self._copying = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        self._warm_up()
        self._sums, self._marks = self._record()
        eager.buckets.clear()

    def __call__(
        self, batch: Batch[Tensor], *, seed: int, factor: Tensor, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Replay for a batch of the recorded shape; others, such as halves of one, go the way of single launches."""
        if not isinstance(batch, PackedBatch) or not _is_alike(batch, self._batch):
            return self._eager(batch, seed=seed, factor=factor, last=last)
        clock = self._eager.clock
        with clock.phase("forward"):
            self._bring(batch, seed)
            self._factor.copy_(factor)
            self._forward.replay()
        with clock.phase("backward"):
            self._backward.replay()
        if last:
            self._eager.buckets.send_marked(self._marks)
        return self._sums

    def _bring(self, batch: PackedBatch[Tensor], seed: int) -> None:
        """Copy to the device beside the computation that is still going on there."""
        computing = torch.cuda.current_stream()
        with torch.cuda.stream(self._copying):
            brought = [
                tensor.to(self._eager.device, non_blocking=True)
                for tensor in (*_tensors(batch), _seed_tensor(seed))
            ]
        computing.wait_stream(self._copying)
        for tensor in brought:
            tensor.record_stream(computing)
        torch._foreach_copy_([*_tensors(self._batch), self._seed], brought)

    def _warm_up(self) -> None:
        # Kernels are compiled and libraries opened before anything is recorded.
        stream = torch.cuda.Stream(self._eager.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            loss, _ = self._eager.forward(self._batch, seed=self._seed, factor=self._factor)
            loss.backward()  # type: ignore[no-untyped-call]
        torch.cuda.current_stream().wait_stream(stream)

    def _record(self) -> tuple[tuple[Tensor, Tensor], Sequence[torch.cuda.Event]]:
        with torch.cuda.graph(self._forward):
            loss, nll = self._eager.forward(self._batch, seed=self._seed, factor=self._factor)
        with (
            torch.cuda.graph(self._backward, pool=self._forward.pool()),
            self._eager.buckets.marking() as marks,
        ):
            loss.backward()  # type: ignore[no-untyped-call]
        return (loss.detach(), nll), marks


def _seed_tensor(seed: int) -> Tensor:
    words = [seed >> shift & 0xFFFFFFFF for shift in (0, 32)]
    signed = [word - 2**32 if word >= 2**31 else word for word in words]
    tensor = torch.tensor(signed, dtype=torch.int32)
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


def _tensors(batch: PackedBatch[Tensor]) -> list[Tensor]:
    held: list[Tensor] = []
    batch.map(held.append)
    return held


def _is_alike(batch: PackedBatch[Tensor], other: PackedBatch[Tensor]) -> bool:
    return all(one.shape == two.shape for one, two in zip(_tensors(batch), _tensors(other), strict=True))
