"""Events in the life of checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.runlog.event.fact import Event

__all__ = ["CheckpointFailed", "CheckpointRejected", "CheckpointRemoved", "CheckpointWritten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWritten(Event):
    """A checkpoint is whole on the disk."""

    step: int
    folder: str
    """In the run folder."""
    bytes: int
    blocked_s: float
    """How long training waited for it."""
    write_s: float
    """How long the write took beside training."""
    files: Mapping[str, int]
    """Bytes of each file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRemoved(Event):
    """A checkpoint was deleted to make room for better or newer ones."""

    step: int
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRejected(Event):
    """A checkpoint was found torn or spoilt, and is not used."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFailed(Event):
    """A checkpoint could not be written; the ones before are untouched."""

    step: int
    reason: str
