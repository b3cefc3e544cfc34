"""Events of data preparation."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.artefact import JsonValue
from tandem.runlog.event.fact import Event

__all__ = ["BatchesPlanned", "DataPrepared", "StageFinished", "StageStarted"]


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
