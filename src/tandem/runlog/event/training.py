"""Events of training: its start, its steps, its troubles with memory, its end."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.runlog.event.fact import Event

__all__ = ["BatchFitted", "BatchSplit", "StepFinished", "TrainingFinished", "TrainingStarted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStarted(Event):
    """The ranks are ready for their first step, of a new training or of one that goes on."""

    step: int
    """Steps done before."""
    tokens: int
    """Target tokens trained on before."""
    resumed_from: str
    """Folder of the checkpoint; empty for a new training."""
    parameters: int
    ranks: int
    device: str
    precision: str
    layout: str
    """Whether batches are padded or packed."""
    source_capacity: int
    """Source tokens that a batch may hold."""
    target_capacity: int
    """Target tokens that a batch may hold."""
    updates_per_epoch: int
    pairs: int
    """Pairs in an epoch."""
    max_steps: int
    schedule: str
    """Formula of the learning rate with its numbers, as a sentence."""
    target_tokens_per_update: int
    max_tokens: int = 0
    """Target tokens after which training ends; 0: no such rule."""
    max_minutes: float = 0.0
    """Minutes of training, over all restarts, after which it ends; 0: no such rule."""
    way: str = "plain"
    """How rank 0 computes: with plain operations, fused kernels, or those as a CUDA graph."""
    way_reason: str = ""
    """Why not in a faster way; empty where there is nothing to say."""
    resumed_host: str = ""
    """Host that had the checkpoint; empty for a new training."""
    checkpoint_hosts: tuple[str, ...] = ()
    """Hosts on whose disks checkpoints are written, that of rank 0 first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(Event):
    """An update was made, or skipped because its gradients were not finite; counts are of all ranks together."""

    step: int
    epoch: int
    loss: float
    """What was minimised, smoothing and dropout included, per target token."""
    nll: float
    """Negative log-likelihood per target token, without smoothing but with dropout."""
    learning_rate: float
    gradient_norm: float
    """Before clipping, of the true gradients."""
    loss_scale: float
    skipped: bool
    target_tokens: int
    source_tokens: int
    pairs: int
    batches: int
    duration_s: float
    phases: Mapping[str, float]
    """Seconds of this rank in data, forward, backward, exchange, optimizer and other."""
    split: int
    """Batches of this rank that had to be split for lack of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSplit(Event):
    """A batch did not fit into memory and was done in pieces."""

    step: int
    target_tokens: int
    pieces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFitted(Event):
    """The largest batch that fits into memory was found by trying."""

    layout: str
    source_tokens: int
    target_tokens: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFinished(Event):
    """The last step was made."""

    step: int
    tokens: int
    reason: str
    """The stop rule that ended it, or who asked."""
    duration_s: float
