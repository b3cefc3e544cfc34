"""What went wrong in a run and was survived: one line for each kind of trouble, with its last occurrence."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter

from tandem.observe.exchange_mode import describe_check, describe_residuals
from tandem.observe.numbers import count
from tandem.runlog.event import (
    BatchSplit,
    CheckpointFailed,
    CheckpointRejected,
    Event,
    EventsDropped,
    ExchangeChecked,
    HostRefused,
    ResidualsReset,
    ResidualsRestored,
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
    is_least: bool = False
    """Whether it was met that often at least: not all of it was kept."""

    def __str__(self) -> str:
        if self.times == 1:
            return self.text
        return f"{self.text} ({'at least ' if self.is_least else ''}{count(self.times)} times so far)"


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
        return self._add(type(event).__name__, text, time_ns=record.time_ns) if text else None

    def skip(self, step: int, *, times: int, time_ns: int) -> None:
        """Take so many skipped steps at once, of which this is the last."""
        self._add(StepFinished.__name__, _skipped(step), time_ns=time_ns, times=times)

    def exceed(self, kind: type[Event]) -> None:
        """Note that there may have been more of a kind than were told of."""
        held = self._held.get(kind.__name__)
        if held is not None:
            self._held[kind.__name__] = replace(held, is_least=True)

    def note(self, text: str, *, time_ns: int) -> None:
        """Note a trouble that is told of more than once, but counts once."""
        self._held.setdefault(text, Trouble(times=1, text=text, time_ns=time_ns))

    def _add(self, kind: str, text: str, *, time_ns: int, times: int = 1) -> Trouble:
        before = self._held.pop(kind, None)
        trouble = Trouble(
            times=before.times + times if before else times,
            text=text,
            time_ns=time_ns,
            is_least=before is not None and before.is_least,
        )
        self._held[kind] = trouble
        return trouble

    def __iter__(self) -> Iterator[Trouble]:
        return iter(sorted(self._held.values(), key=attrgetter("time_ns")))

    def __len__(self) -> int:
        return len(self._held)


def _sentence(event: Event) -> str:
    text = ""
    match event:
        case StepFinished(skipped=True):
            text = _skipped(event.step)
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
        case ResidualsRestored() | ResidualsReset() | ExchangeChecked(is_good=False):
            text = describe_check(event) if isinstance(event, ExchangeChecked) else describe_residuals(event)
        case StopAsked():
            text = f"{event.signal}: stops after the step at hand"
    return text


def _skipped(step: int) -> str:
    return f"step {count(step)} skipped: its gradients were not finite"
