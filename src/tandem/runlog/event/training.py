"""Events of training: its start, its steps, its troubles with memory, its end."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tandem.runlog.event.fact import Event

__all__ = [
    "BatchFitted",
    "BatchSplit",
    "DeviceMeasured",
    "ExchangeChecked",
    "ExchangeChosen",
    "ExchangeProbed",
    "ResidualsReset",
    "ResidualsRestored",
    "StepFinished",
    "TrainingFinished",
    "TrainingStarted",
]


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
    flops_per_target_token: float = 0.0
    """Operations of forward and backward that one needs, its share of the source included; 0: not counted."""
    gradient_bytes: int = 0
    """Bytes of gradients, as they are summed over ranks; 0: not counted."""
    schedule_kind: str = ""
    """Name of the schedule, whose other numbers are the next four and max_steps; empty: not told."""
    learning_rate: float = 0.0
    """The highest rate of the schedule; for `transformer` the factor of its formula."""
    warmup_steps: int = 0
    cooldown_steps: int = 0
    """Last steps before max_steps, over which the rate falls to zero."""
    width: int = 0
    """Width of the model, which the schedule `transformer` is scaled by."""


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
    sent_bytes: int = 0
    """Bytes that this rank contributed to the exchange.

    Of an exact exchange all gradients, of which a link carries more or less by the way they are summed; of an encoded
    one its messages to other hosts, and what goes exactly beside them.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeProbed(Event):
    """The batches of a step were also done without any exchange, and nothing was learnt from that.

    Both were begun by all ranks at once. Their difference, on the slowest rank, is what the exchange costs.
    """

    step: int
    synchronised_s: float
    """Forward, backward and exchange of the step itself."""
    unsynchronised_s: float
    """Forward and backward of the same batches alone."""
    exchange_s: float
    """Of the step itself: how long this rank waited after its backward. A lower bound of what the exchange costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeChosen(Event):
    """The mode of exchanging gradients from the next step on, the same on every rank, and the numbers behind it."""

    step: int
    """Steps done before."""
    mode: str
    """exact, bf16 or packed."""
    previous: str
    """The mode before; empty where there was none."""
    reason: str
    """`ordered` by the user, `resumed` from the checkpoint, `measured`, `unmeasured` as yet, `one host`, or `checked`:
    a less exact mode was found too far off."""
    hosts: int
    shares: int
    """Parts of the gradients that each host sends at the same time, one by each of so many ranks."""
    exact_steps: int
    """First steps of the run that are exact in any mode."""
    modes: tuple[str, ...]
    """The modes that the following lists are of, the most exact one first."""
    link_bytes: tuple[int, ...]
    """By mode: bytes that the busiest host sends to others in a step, reckoned."""
    exchange_s: tuple[float, ...]
    """By mode: seconds of an exchange with nothing beside it; nan: not measured."""
    codec_s: tuple[float, ...]
    """By mode: seconds of that in which the slowest rank encoded and decoded; nan: not measured."""
    exposed_s: tuple[float, ...]
    """By mode: seconds of a step that the exchange is expected to cost; nan: not measured."""
    compute_s: float
    """Forward and backward without exchange, on the slowest rank; nan: not measured."""
    spread_s: float = math.nan
    """How far apart the probes of the exact exchange were: no smaller gain counts; nan: not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeChecked(Event):
    """Encoded gradients of a step were held against the exact ones, over all ranks, by sketches of both.

    All but the angle are shares of the exact gradient's norm, right to about 4 %.
    """

    step: int
    mode: str
    """bf16 or packed."""
    error: float
    """Of the difference between what ranks learnt from and the exact gradient."""
    cosine: float
    """Of the angle between the two."""
    owed: float
    """Of what is left for later steps."""
    lost: float
    """Of what is neither in the decoded gradient nor left for later, in the bucket where that is largest."""
    bucket: int
    """That bucket, counted from 0."""
    is_good: bool
    """Whether the mode stays; else a more exact one is chosen after this step."""
    duration_s: float
    """That rank 0 took for the comparison, the sketches not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualsRestored(Event):
    """What encoding had left over before a restart was found again, or counts as zero."""

    step: int
    """The step of the checkpoint."""
    expected: int
    """Residuals that were saved with it, over all hosts."""
    found: int
    """Those that were found whole; the others count as zero."""
    is_same_layout: bool
    """Whether they are as they were, to the bit; else their sum was shared out among the hosts."""
    is_used: bool = True
    """Whether gradients are still encoded; where they are exact from now on, no residual is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualsReset(Event):
    """Steps were skipped because residuals of encoded gradients were not finite; those of all ranks are zero now."""

    step: int
    """The last step that was skipped before."""
    skipped: int
    """Steps skipped in a row until then."""
    ranks: tuple[int, ...]
    """Ranks whose residuals were not finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMeasured(Event):
    """How fast a rank's device multiplies large matrices, in the precision of training, all ranks at once."""

    device: str
    precision: str
    flops_per_s: float
    duration_s: float
    """What measuring took."""


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
