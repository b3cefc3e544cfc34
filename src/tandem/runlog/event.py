"""The facts that a run writes down: one frozen dataclass for each thing that happened."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.artefact import JsonValue

__all__ = [
    "EVENTS",
    "BatchesPlanned",
    "DataPrepared",
    "Event",
    "EventsDropped",
    "RunFinished",
    "RunStarted",
    "StageFinished",
    "StageStarted",
    "Unknown",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened; the class name is its name in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A process of the run began to work."""

    run: str
    tandem: str
    command: tuple[str, ...]
    recipe: str
    """Fingerprint of the resolved recipe."""
    world_size: int
    host: str
    python: str
    torch: str
    """Empty where the work needs no torch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted(Event):
    """A stage of data preparation began."""

    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinished(Event):
    """A stage of data preparation ended well."""

    stage: str
    duration_s: float
    counts: Mapping[str, int]
    reused: bool
    """Whether an earlier result was found fresh and nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPrepared(Event):
    """The training data is ready, and this is what it holds."""

    card: Mapping[str, JsonValue]
    """The data card, as `tandem.runlog.card` writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesPlanned(Event):
    """The pairs of an epoch were dealt out to updates."""

    pairs: int
    updates_per_epoch: int
    padding_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDropped(Event):
    """The writer could not keep up or could not write, and these events are missing."""

    count: int
    since_ns: int
    """When the first of them happened, in nanoseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """The run ended in an orderly way."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """An event that this version does not know or cannot read: kept as it was written."""

    kind: str
    fields: Mapping[str, JsonValue]


EVENTS: tuple[type[Event], ...] = (
    RunStarted,
    StageStarted,
    StageFinished,
    DataPrepared,
    BatchesPlanned,
    EventsDropped,
    RunFinished,
)
