"""The life of a run: its starts and ends, its processes, its hosts and links."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tandem.observe.series.columns import Marked
from tandem.runlog.event import (
    BatchesPlanned,
    DeviceMeasured,
    Event,
    EventsDropped,
    HostExamined,
    LinkMeasured,
    RunFinished,
    RunImported,
    RunStarted,
    TrainingFinished,
    TrainingStarted,
)

__all__ = ["Life", "fold_life"]


@dataclass(slots=True, kw_only=True)
class Life:
    """What holds at the end; of things that happened again, the last."""

    name: str = ""
    is_closed: bool = False
    ended: str = ""
    imported: RunImported | None = None
    processes: dict[int, RunStarted] = field(default_factory=dict)
    """By rank."""
    starts: list[tuple[float, TrainingStarted]] = field(default_factory=list)
    finished: TrainingFinished | None = None
    planned: BatchesPlanned | None = None
    devices: dict[int, DeviceMeasured] = field(default_factory=dict)
    """By rank, of its last process."""
    examined: dict[str, HostExamined] = field(default_factory=dict)
    links: dict[tuple[str, str], LinkMeasured] = field(default_factory=dict)
    """By sender and receiver."""
    dropped: int = 0
    is_supervised: bool = False
    """Whether a command watches over the ranks: a rank's end is not the run's."""

    def take_process(self, rank: int | None, event: RunStarted) -> None:
        """A process began."""
        self.name = event.run
        if rank is not None:
            self.processes[rank] = event
            self.devices.pop(rank, None)
        if not rank:
            # A rank that begins after the command has ended was started by another launcher.
            self.is_supervised = rank is None or (self.is_supervised and not self.is_closed)
            self.ended, self.is_closed = "", False

    def take_training(self, time_s: float, event: TrainingStarted) -> None:
        """Training began, or went on."""
        self.starts.append((time_s, event))
        self.finished, self.ended, self.is_closed = None, "", False

    def take_end(self, rank: int | None, event: TrainingFinished | RunFinished) -> None:
        """Training ended, or a process did; only the first rank and what watches over the ranks speak for all."""
        if rank:
            return
        if isinstance(event, TrainingFinished):
            self.finished, self.ended = event, event.reason
        else:
            self.is_closed, self.ended = rank is None or not self.is_supervised, self.ended or event.reason

    def take_host(self, event: Event) -> None:
        """A host or a link was looked at, or writers lost something."""
        match event:
            case HostExamined():
                self.examined[event.host] = event
            case LinkMeasured():
                self.links[event.sender, event.receiver] = event
            case EventsDropped():
                self.dropped += event.count
            case RunImported():
                self.imported = event
            case BatchesPlanned():
                self.planned = event


def fold_life(marks: Iterable[Marked]) -> Life:
    """Fold rare records that are in order of time."""
    life = Life()
    for mark in marks:
        match mark.event:
            case RunStarted() as event:
                life.take_process(mark.rank, event)
            case TrainingStarted() as event:
                life.take_training(mark.time_s, event)
            case TrainingFinished() | RunFinished() as event:
                life.take_end(mark.rank, event)
            case DeviceMeasured() as event if mark.rank is not None:
                life.devices[mark.rank] = event
            case event:
                life.take_host(event)
    return life
