"""What a run's logs hold, as columns: steps, ranks, evaluations, checkpoints, hosts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.runlog.card import DataCard
from tandem.runlog.event import (
    BatchesPlanned,
    DeviceMeasured,
    Event,
    HostDescribed,
    HostExamined,
    LinkMeasured,
    RunImported,
    RunStarted,
    SampleTranslated,
    TrainingFinished,
    TrainingStarted,
)

__all__ = [
    "PHASES",
    "Checkpoint",
    "Evaluation",
    "HostSamples",
    "Marked",
    "Probes",
    "RankSteps",
    "Series",
    "Steps",
]

Numbers: TypeAlias = NDArray[np.float64]
Short: TypeAlias = NDArray[np.float32]
Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

PHASES = ("data", "forward", "backward", "exchange", "optimizer", "other")
"""What a step's time is split into; exchange is the wait for gradients after backward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps that stand, in order: a step that was done again after a restart is there once, as it was last."""

    step: Counts
    time_s: Numbers
    """When it ended, in seconds since the run's first record."""
    epoch: Counts
    loss: Numbers
    nll: Numbers
    learning_rate: Numbers
    gradient_norm: Numbers
    skipped: Flags
    target_tokens: Counts
    """Of all ranks; also the next two."""
    source_tokens: Counts
    pairs: Counts
    duration_s: Numbers
    """Of rank 0."""

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSteps:
    """How each rank spent each of the steps that stand: a row a rank, a column a step; nan where it is not known."""

    duration_s: Short
    phases: Mapping[str, Short]
    """By the names in PHASES."""
    sent_bytes: Short
    hosts: tuple[str, ...]
    """Host of each rank at the end, as it names itself."""

    @property
    def ranks(self) -> int:
        """How many there were at most."""
        return int(self.duration_s.shape[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Steps that were also done without exchange, a row a measurement of one rank."""

    step: Counts
    rank: Counts
    synchronised_s: Numbers
    unsynchronised_s: Numbers
    exchange_s: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is known of the model after a step; nan where it was not measured."""

    step: int
    time_s: float
    valid_loss: float
    probe_loss: float
    """On training pairs, measured like the valid ones."""
    valid_tokens: int
    probe_tokens: int
    bleu: float
    bleu_low: float
    bleu_high: float
    bleu_signature: str
    chrf: float
    sentences: int
    hypotheses: str
    scores: Mapping[str, float]
    """Imported numbers that another tool called scores, by name."""
    duration_s: float
    is_best_loss: bool
    is_best_bleu: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was written; on several hosts, rank 0's copy."""

    step: int
    time_s: float
    folder: str
    bytes: int
    blocked_s: float
    write_s: float
    files: Mapping[str, int]
    is_removed: bool
    is_rejected: bool
    """Whether it was found torn or spoilt later: it is no longer taken for a checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSamples:
    """Once a second, what one host did; `gpu_*` have a row for each GPU, the last five a row for each interface."""

    described: HostDescribed
    time_s: Numbers
    seconds: Short
    cpu: Short
    memory_bytes: Numbers
    disk_free_bytes: Numbers
    disk_read_bytes_per_s: Short
    disk_written_bytes_per_s: Short
    retransmitted: Short
    gpu_utilisation: Short
    gpu_memory_bytes: Numbers
    gpu_power_w: Short
    gpu_clock_mhz: Short
    gpu_temperature_c: Short
    gpu_throttled: Flags
    """Whether a fault held the clock down."""
    gpu_capped: Flags
    """Whether the card's own power limit did."""
    received_bytes_per_s: Short
    sent_bytes_per_s: Short
    packets_per_s: Short
    dropped: Short


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A rare event with its time: restarts, losses, checkpoints, evaluations, warnings."""

    time_s: float
    rank: int | None
    host: str | None
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Series:
    """A run, folded: all that findings, figures and reports are made of."""

    name: str
    begun_ns: int
    """Wall clock of the first record, nanoseconds since 1970; times below are seconds since then."""
    end_s: float
    """Of the last record."""
    is_closed: bool
    """Whether the run said good-bye; a run that did not is going on, or was killed."""
    ended: str
    """Why training ended, or the run; empty while neither did."""
    imported: RunImported | None
    processes: tuple[RunStarted, ...]
    """The last start of every rank, in the order of ranks."""
    starts: tuple[tuple[float, TrainingStarted], ...]
    """Every start of training with its time: the first, and one after each restart."""
    finished: TrainingFinished | None
    """Of the last training, if it ended in an orderly way."""
    planned: BatchesPlanned | None
    devices: tuple[DeviceMeasured, ...]
    """Of every rank at its last start; empty where none was measured."""
    steps: Steps
    ranks: RankSteps
    redone_steps: int
    """Steps of rank 0 that were done again because a restart went back."""
    redone_s: float
    """Their time the first time."""
    probes: Probes
    evaluations: tuple[Evaluation, ...]
    checkpoints: tuple[Checkpoint, ...]
    translations: tuple[SampleTranslated, ...]
    """Of the last evaluation that had some."""
    examined: tuple[HostExamined, ...]
    links: tuple[LinkMeasured, ...]
    """As measured last, before training on several hosts."""
    samples: Mapping[str, HostSamples]
    """By the name of the host."""
    marks: tuple[Marked, ...]
    """In order of time; steps, samples and sentences are not among them."""
    card: DataCard | None
    recipe: Mapping[str, object]
    """The resolved recipe, as the run folder has it; empty where it has none."""
    damaged: int
    """Lines of the logs that could not be read."""
    dropped: int
    """Events that the writers could not keep."""
    led_damaged: int = 0
    """Lines that could not be read in the file that speaks for the run."""
    process_ranks: tuple[int, ...] = ()
    """The rank of each of `processes`; empty: they are those from 0 on."""
    set_s: float = 0.0
    """By how much the clock of rank 0's host was set while the run went on, or its host asleep between processes."""
    ahead_s: float = 0.0
    """By how much that clock was ahead of these times in the end, for having been set."""

    @property
    def started(self) -> TrainingStarted | None:
        """The last start of training."""
        return self.starts[-1][1] if self.starts else None
