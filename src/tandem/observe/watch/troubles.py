"""What went wrong in a run and was survived: one line for each kind of trouble, with its last occurrence."""

from collections.abc import Iterator
from dataclasses import dataclass

from tandem.observe.numbers import count
from tandem.runlog.event import (
    BatchSplit,
    CheckpointFailed,
    CheckpointRejected,
    Event,
    EventsDropped,
    HostRefused,
    StepFinished,
    StopAsked,
    TrainingStarted,
    WorkersLost,
)
from tandem.runlog.record import Record

__all__ = ["Trouble", "Troubles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A kind of trouble: how often it was met, and a sentence about the last time."""

    times: int
    text: str
    time_ns: int
    """Of the last time, nanoseconds since 1970."""

    def __str__(self) -> str:
        return self.text if self.times == 1 else f"{self.text} ({count(self.times)} times so far)"


class Troubles:
    """Folds records into troubles; the newest is last."""

    def __init__(self) -> None:
        self._held: dict[str, Trouble] = {}

    def apply(self, record: Record) -> Trouble | None:
        """Take a record of any writer; returns the trouble that it told of."""
        event = record.event
        if isinstance(event, TrainingStarted):
            self._held.pop(StopAsked.__name__, None)
        # What every rank tells alike counts once.
        if record.rank not in (None, 0) and isinstance(event, StepFinished | StopAsked | CheckpointRejected):
            return None
        text = _sentence(event)
        return self._add(type(event).__name__, text, record.time_ns) if text else None

    def note(self, text: str, *, time_ns: int) -> None:
        """Note a trouble that is told of more than once, but counts once."""
        self._held.setdefault(text, Trouble(times=1, text=text, time_ns=time_ns))

    def _add(self, kind: str, text: str, time_ns: int) -> Trouble:
        before = self._held.pop(kind, None)
        trouble = Trouble(times=before.times + 1 if before else 1, text=text, time_ns=time_ns)
        self._held[kind] = trouble
        return trouble

    def __iter__(self) -> Iterator[Trouble]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)


def _sentence(event: Event) -> str:
    text = ""
    match event:
        case StepFinished(skipped=True):
            text = f"step {count(event.step)} skipped: gradients not finite, loss scale {event.loss_scale:g}"
        case BatchSplit():
            text = f"batch of step {count(event.step)} did not fit into memory: done in {event.pieces} pieces"
        case CheckpointFailed():
            text = f"checkpoint of step {count(event.step)} could not be written: {event.reason}"
        case CheckpointRejected():
            text = f"{event.folder} is not used: {event.reason}"
        case WorkersLost():
            where = f" on {event.host}" if event.host else ""
            text = (
                f"rank {event.rank}{where} was lost at start {event.attempt}: {event.reason}; all start again"
            )
        case HostRefused():
            text = f"{event.host} is not taken in again: {event.reason}"
        case EventsDropped():
            text = f"records missing from the log: {count(event.count)}"
        case StopAsked():
            text = f"{event.signal}: stops after the step at hand"
    return text
