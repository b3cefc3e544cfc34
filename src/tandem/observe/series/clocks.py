"""How far the clock of each host was ahead of the head's, and times without that."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tandem.observe.series.columns import Counts
from tandem.observe.series.part import Part
from tandem.runlog.event import HostExamined, RoundStarted, RunStarted
from tandem.runlog.record import Record

__all__ = ["Ahead", "Clocks", "Timed", "set_clock"]


class Clocks:
    """Offsets of the hosts by the names that they give themselves; a host of which nothing is known is right."""

    def __init__(self, parts: Iterable[Part]) -> None:
        rounds: list[RoundStarted] = []
        processes: dict[int, list[str]] = {}
        self._examined: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for part in parts:
            for record in part.rare:
                match record.event:
                    case HostExamined() as event if math.isfinite(event.clock_offset_s):
                        self._examined[event.host].append((record.time_ns, event.clock_offset_s))
                    case RoundStarted() as event:
                        rounds.append(event)
                    case RunStarted() as event if record.rank is not None:
                        processes.setdefault(record.rank, []).append(event.host)
        self._names = _match(rounds, processes)

    def ahead_ns(self, host: str | None, time_ns: int) -> int:
        """How far that host's clock was ahead, in nanoseconds, at a time that it shows."""
        held = self._examined.get(self._names.get(host or "", host or ""))
        if not held:
            return 0
        known = [offset_s for at_ns, offset_s in held if at_ns <= time_ns - round(1e9 * offset_s)]
        return round(1e9 * (known[-1] if known else held[0][1]))


def _match(rounds: Sequence[RoundStarted], processes: Mapping[int, Sequence[str]]) -> dict[str, str]:
    """The command line's name for each host: the ranks that it was given are those whose processes say its own."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for rank, own_names in processes.items():
        given = [name for name in (_host_of(each, rank) for each in rounds) if name is not None]
        for own, name in zip(own_names, given, strict=False):
            votes[own][name] += 1
    return {own: counted.most_common(1)[0][0] for own, counted in votes.items()}


def _host_of(started: RoundStarted, rank: int) -> str | None:
    for host in started.hosts:
        rank -= started.workers.get(host, 0)
        if rank < 0:
            return host
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """How far the clock of one file's writers was ahead, from one start of a process to the next."""

    rows: tuple[int, ...]
    """Steps before each start."""
    ahead_ns: tuple[int, ...]
    """Before the first start, and after each."""

    def without(self, time_ns: Counts, *, start: int = 0) -> Counts:
        """The times of steps on the head's clock, from a row on."""
        if not any(self.ahead_ns):
            return time_ns[start:]
        parts = np.searchsorted(self.rows, np.arange(start, len(time_ns)), side="right")
        ahead_ns: Counts = np.array(self.ahead_ns, np.int64)[parts]
        return time_ns[start:] - ahead_ns

    def goes_on(self, former: "Ahead") -> bool:
        """Whether it says nothing else than a former one did, as far as that went."""
        count = len(former.rows)
        return self.rows[:count] == former.rows and self.ahead_ns[: count + 1] == former.ahead_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A file whose times are on the head's clock."""

    part: Part
    ahead: Ahead
    rare: Sequence[Record]
    first_ns: int | None
    last_ns: int

    def probe_ns(self) -> Counts:
        """Times of its probes."""
        ahead_ns = np.array(self.ahead.ahead_ns, np.int64)
        time_ns: Counts = self.part.probes["time_ns"] - ahead_ns[self.part.probes["start"]]
        return time_ns

    def sample_ns(self) -> Counts:
        """Times of its samples."""
        held = [each.columns["time_ns"] for each in self.part.stretches]
        return np.concatenate(held) - self.ahead.ahead_ns[-1]


def set_clock(part: Part, clocks: Clocks) -> Timed:
    """Put the times of a file on the head's clock; the file stays as it is."""
    ahead = [clocks.ahead_ns(part.host, part.first_ns or 0)]
    held: list[Record] = []
    first_ahead: int | None = None
    for record in part.rare:
        if isinstance(record.event, RunStarted) and record.rank is not None:
            ahead.append(clocks.ahead_ns(record.event.host, record.time_ns))
        first_ahead = ahead[-1] if first_ahead is None else first_ahead
        held.append(replace(record, time_ns=record.time_ns - ahead[-1]) if ahead[-1] else record)
    first_ahead = ahead[-1] if first_ahead is None else first_ahead
    return Timed(
        part=part,
        ahead=Ahead(rows=tuple(part.starts), ahead_ns=tuple(ahead)),
        rare=held,
        first_ns=None if part.first_ns is None else part.first_ns - first_ahead,
        last_ns=part.last_ns if part.first_ns is None else part.last_ns - ahead[-1],
    )
