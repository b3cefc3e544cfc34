"""Forward and backward of one micro-batch on a GPU: fused kernels, replayed as CUDA graphs where shapes allow."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from tandem.data.batches.batch import Batch, PackedBatch
from tandem.data.batches.block import in_one_block
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
        halves: Mapping[Tensor, Tensor],
        buckets: GradientBuckets,
        smoothing: float,
        clock: PhaseClock,
        fp8: bool = False,
    ) -> None:
        self._fused = FusedTransformer(model, halves=halves, on_gradient=buckets.note, fp8=fp8)
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
            drawn = _seed_tensor(seed).to(self.device, non_blocking=True)
            loss, nll = self.forward(held, seed=drawn, factor=factor)
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
    """A fused pass recorded once and replayed for every batch of the same shape: the host only says go.

    When an update comes in rows of another shape, because the rank has a new share, it is recorded anew.
    """

    def __init__(self, eager: FusedPass, example: PackedBatch[Tensor]) -> None:
        """Records a pass over the example, whose gradients are cleared; any finite batch of the shape will do."""
        self._eager = eager
        self._errors = "global"
        self._record_for(example)

    def _record_for(self, example: PackedBatch[Tensor]) -> None:
        eager, device = self._eager, self._eager.device
        held = in_one_block(example.map(Tensor.numpy), pinned=False)
        self._block = _block_of(held).to(device)
        self._batch = held.map(
            lambda tensor: self._block.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        )
        self._seed = torch.zeros(2, dtype=torch.int32, device=device)
        self._factor = torch.ones((), device=device)
        self._copying = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        self._warm_up()
        self._sums, self._marks = self._record()
        self._places = self._tried = _places(self._batch)
        eager.buckets.clear()

    def __call__(
        self, batch: Batch[Tensor], *, seed: int, factor: Tensor, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Replay for a batch of the recorded shape; others, such as halves of one, go the way of single launches."""
        if not isinstance(batch, PackedBatch) or not self._can_replay(batch):
            return self._eager(batch, seed=seed, factor=factor, last=last)
        clock = self._eager.clock
        with clock.phase("forward"):
            self._bring(batch)
            self._seed.copy_(_seed_tensor(seed), non_blocking=True)
            self._factor.copy_(factor)
            self._forward.replay()
        with clock.phase("backward"):
            self._backward.replay()
        if last:
            self._eager.buckets.send_marked(self._marks)
        return self._sums

    def _can_replay(self, batch: PackedBatch[Tensor]) -> bool:
        # A graph adds to all buckets, also to those that were sent already before a restart.
        if not self._eager.buckets.is_whole:
            return False
        places = _places(batch)
        if places != self._places and _is_in_one_block(batch):
            self._record_anew(batch)
        return places == self._places

    def _record_anew(self, batch: PackedBatch[Tensor]) -> None:
        """Record for rows of another shape; where that fails, they go the way of single launches.

        Shapes change between updates, so that the buckets, which recording clears, are still empty.
        """
        if self._tried == _places(batch):
            return
        self._tried = _places(batch)
        self._places = []
        # By now another thread pins the memory of batches to come, which may not end the recording.
        self._errors = "thread_local"
        del self._forward, self._backward, self._sums, self._marks
        torch.cuda.synchronize(self._eager.device)
        try:
            self._record_for(batch)
        except RuntimeError:
            self._places = []
            self._eager.buckets.clear()
            torch.cuda.empty_cache()

    def _bring(self, batch: PackedBatch[Tensor]) -> None:
        """Copy to the device beside the computation that is still going on there."""
        computing = torch.cuda.current_stream()
        with torch.cuda.stream(self._copying):
            brought = _block_of(batch).to(self._eager.device, non_blocking=True)
        computing.wait_stream(self._copying)
        brought.record_stream(computing)
        self._block.copy_(brought)

    def _warm_up(self) -> None:
        # Kernels are compiled and libraries opened before anything is recorded.
        stream = torch.cuda.Stream(self._eager.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            loss, _ = self._eager.forward(self._batch, seed=self._seed, factor=self._factor)
            loss.backward()  # type: ignore[no-untyped-call]
        torch.cuda.current_stream().wait_stream(stream)

    def _record(self) -> tuple[tuple[Tensor, Tensor], Sequence[torch.cuda.Event]]:
        with torch.cuda.graph(self._forward, capture_error_mode=self._errors):
            loss, nll = self._eager.forward(self._batch, seed=self._seed, factor=self._factor)
        with (
            torch.cuda.graph(self._backward, pool=self._forward.pool(), capture_error_mode=self._errors),
            self._eager.buckets.marking() as marks,
        ):
            loss.backward()  # type: ignore[no-untyped-call]
        return (loss.detach(), nll), marks


def _seed_tensor(seed: int) -> Tensor:
    words = [seed >> shift & 0xFFFFFFFF for shift in (0, 32)]
    signed = [word - 2**32 if word >= 2**31 else word for word in words]
    tensor = torch.tensor(signed, dtype=torch.int32)
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


def _block_of(batch: PackedBatch[Tensor]) -> Tensor:
    """All of the memory that a batch in one block lies in."""
    block = torch.empty(0, dtype=torch.int32, device=batch.source.device)
    return block.set_(batch.source.untyped_storage())


def _is_in_one_block(batch: PackedBatch[Tensor]) -> bool:
    """Whether it comes from the stream: pieces of a batch that was split have memory of their own."""
    return all(distance == 0 for *_, distance in _places(batch))


def _places(batch: PackedBatch[Tensor]) -> list[tuple[object, ...]]:
    """Where the tensors of a batch lie, seen from the first one's memory."""
    first = batch.source.untyped_storage().data_ptr()
    found: list[tuple[object, ...]] = []
    batch.map(
        lambda tensor: found.append(
            (tensor.shape, tensor.storage_offset(), tensor.untyped_storage().data_ptr() - first)
        )
    )
    return found
