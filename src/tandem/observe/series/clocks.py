"""How far the clock of each host was ahead of the head's, and times without that."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tandem.observe.series.part import Part, Rare
from tandem.runlog.event import HostExamined, RoundStarted, RunStarted

__all__ = ["Clocks", "set_clock"]


class Clocks:
    """Offsets of the hosts by the names that they give themselves; a host of which nothing is known is right."""

    def __init__(self, parts: Iterable[Part]) -> None:
        rounds: list[RoundStarted] = []
        processes: dict[int, list[str]] = {}
        self._examined: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for part in parts:
            for rare in part.rare:
                match rare.record.event:
                    case HostExamined() as event:
                        self._examined[event.host].append((rare.record.time_ns, event.clock_offset_s))
                    case RoundStarted() as event:
                        rounds.append(event)
                    case RunStarted() as event if rare.record.rank is not None:
                        processes.setdefault(rare.record.rank, []).append(event.host)
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


def set_clock(part: Part, clocks: Clocks) -> None:
    """Put the times of a file on the head's clock; records of one writer keep their order, and none is there twice."""
    host = part.host
    rows = 0
    part.rare = list(_in_order(part.rare))
    held: list[Rare] = []
    first_ahead: int | None = None
    ahead = clocks.ahead_ns(host, part.first_ns or 0)
    for rare in part.rare:
        event = rare.record.event
        if isinstance(event, RunStarted) and rare.record.rank is not None:
            _shift(part, rows, rare.row, ahead)
            rows, ahead = rare.row, clocks.ahead_ns(event.host, rare.record.time_ns)
        first_ahead = ahead if first_ahead is None else first_ahead
        held.append(
            replace(rare, record=replace(rare.record, time_ns=rare.record.time_ns - ahead)) if ahead else rare
        )
    _shift(part, rows, None, ahead)
    part.rare = held
    for stretch in part.stretches:
        stretch.columns["time_ns"][:] -= ahead
    if part.first_ns is not None:
        part.first_ns -= ahead if first_ahead is None else first_ahead
        part.last_ns -= ahead


def _shift(part: Part, start: int, stop: int | None, ahead_ns: int) -> None:
    if ahead_ns and part.steps:
        part.steps["time_ns"][start:stop] -= ahead_ns


def _in_order(rares: Iterable[Rare]) -> Iterator[Rare]:
    """A clock that was set back stands still; a lower number is another writer's, whose lines came late."""
    seen: set[tuple[int, int]] = set()
    sequence, latest_ns = -1, 0
    for rare in rares:
        record = rare.record
        if (record.sequence, record.time_ns) in seen:
            continue
        seen.add((record.sequence, record.time_ns))
        latest_ns = max(latest_ns, record.time_ns) if record.sequence > sequence else record.time_ns
        sequence = record.sequence
        yield (
            rare if latest_ns == record.time_ns else replace(rare, record=replace(record, time_ns=latest_ns))
        )
