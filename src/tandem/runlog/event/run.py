"""Events in the life of a run and of its processes."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.artefact import JsonValue
from tandem.runlog.event.fact import Event

__all__ = [
    "EventsDropped",
    "HostRefused",
    "RoundStarted",
    "RunFinished",
    "RunImported",
    "RunStarted",
    "StopAsked",
    "WorkersLost",
]


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
class RunImported(Event):
    """The run was trained by another tool; what follows was read from files that it left."""

    tool: str
    """`openseq2seq` or `tensorboard`."""
    files: tuple[str, ...]
    """Names of the files that were read."""
    times: str
    """`wall`: the files have times; `steps`: times of the records are sums of step times; `none`: they mean nothing."""
    step_kind: str
    """Of StepFinished: `each` for single steps, `mean` where one stands for the steps since the one before."""
    facts: Mapping[str, JsonValue]
    """What the tool said of itself, and what its user has seen, by name; docs/import.md lists the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked(Event):
    """Somebody asked the process to stop; it ends after the step at hand."""

    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersLost(Event):
    """A worker died; the others were ended, to be started again together."""

    attempt: int
    """Which start of the workers it was, from 1."""
    exit_code: int
    """Of the worker that died first; negative: the signal that killed it."""
    rank: int
    """Of the worker that died first."""
    reason: str
    host: str = ""
    """Of that worker; where the whole host was lost, its name. Empty in a run on one host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStarted(Event):
    """The ranks were started on several hosts; after a loss, or when a host comes back, they start anew."""

    round: int
    """Which start it was, from 1."""
    hosts: tuple[str, ...]
    """In the order of their ranks."""
    workers: Mapping[str, int]
    """How many ranks are on each of them."""
    address: str
    """Of the first host, where all meet."""
    interfaces: tuple[str, ...]
    """By which each of them reaches the others; empty where it could not be told."""
    network: str = ""
    """What carried the exchange: "mesh", "wireguard", "trusted" or "one host"; empty in older logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRefused(Event):
    """A host that was lost cannot be taken in again, for this reason; it goes on being tried."""

    host: str
    reason: str


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
