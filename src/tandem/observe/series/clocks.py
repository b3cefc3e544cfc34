"""How far the clock of each host was ahead of the head's: as it was examined, or as the steps of its ranks tell."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate

from tandem.observe.series.abreast import SET_NS, Abreast, Apart
from tandem.observe.series.ahead import Unrolled, unroll
from tandem.observe.series.jumps import LEAST_NS, Jump, doubtful_ns, find_jumps, straight_ns
from tandem.observe.series.part import Part
from tandem.runlog.event import HostExamined, RoundStarted, RunStarted

__all__ = ["Clocks"]


class Clocks:
    """Offsets of the hosts by the names that they give themselves; what the leader's host says is right.

    A look at the clocks before training holds as long as none was set. Where one was, and on hosts that nobody looked
    at, ranks are compared step by step: they end each together.
    """

    def __init__(self, parts: Sequence[Part], *, leader: str) -> None:
        self._examined, self._names = _examine(parts)
        self._first = next((part for part in parts if part.name == leader), None)
        hosts = _hosts_of(self._first) if self._first is not None else []
        self._leading = {host for host in hosts if host}
        self._jumps = self._find_jumps(parts)
        self._is_set = any(self._jumps.values())
        if self._is_set:
            self._examined.clear()
        self._apart: dict[str, list[Apart | None]] = {}
        self._by_host: dict[str, Apart] = {}
        if self._first is not None:
            self._compare(parts, self._first)

    def jumps(self, part: Part) -> tuple[Jump, ...]:
        """When the clock was set while the file was written."""
        return self._jumps.get(part.name, ())

    def _find_jumps(self, parts: Sequence[Part]) -> dict[str, tuple[Jump, ...]]:
        found = {part.name: find_jumps(part) for part in parts}
        files = [part for part in parts if self._leading & set(_hosts_of(part))]
        known_ns = [jump.size_ns for part in files for jump in found[part.name]]
        if known_ns:
            found |= {part.name: find_jumps(part, known_ns=known_ns) for part in files}
        sums_ns = [sum(abs(jump.size_ns) for jump in found[part.name]) for part in files]
        self._set_s = max([*sums_ns, *map(doubtful_ns, files)], default=0) / 1e9
        return found

    @property
    def set_s(self) -> float:
        """By how much the clock of the leader's host was set, up or down, or may have been, while the run went on."""
        return self._set_s

    def sizes_ns(self, host: str | None) -> tuple[int, ...]:
        """By how much the clock of a host was set, as the leader's file says if it was there."""
        if self._first is None or not host or _hosts_of(self._first)[-1] != host:
            return ()
        return tuple(jump.size_ns for jump in self.jumps(self._first))

    def unroll(self, part: Part) -> Unrolled:
        """How far the clock of a file's writers was ahead of the head's, from its first record to its last."""
        hosts, found = _hosts_of(part), self._apart.get(part.name, [])

        def base(number: int, host: str, time_ns: int) -> int | None:
            is_measured = number < len(found) and found[number] is not None
            # What a clock was set by still counts in the next process on the same host.
            if self._is_set and number > 1 and host == hosts[number - 1] and not is_measured:
                return None
            return self._ahead_ns(part, number, host, time_ns)

        return unroll(part, self.jumps(part), base=base)

    def _ahead_ns(self, part: Part, number: int, host: str, time_ns: int) -> int:
        examined, apart = self._maybe_examined(host, time_ns), self._apart_of(part, number, host)
        # Where both are known the steps were later.
        if examined is not None and (apart is None or abs(apart.ahead_ns - examined) <= SET_NS):
            return examined
        if apart is None and number == 0 and part.rank is None and host in self._leading:
            return self._set_before_ns(part)
        return apart.ahead_ns if apart is not None else 0

    def _set_before_ns(self, part: Part) -> int:
        """How far a head was ahead of the leader that began on its host after the clock was set: both have one boot."""
        jumps = self.jumps(part)
        if not jumps or self._first is None or not self._first.rare:
            return 0
        beyond_ns = _beyond_ns(part) - _beyond_ns(self._first)
        settings = accumulate(jump.size_ns for jump in jumps)
        return beyond_ns if any(abs(beyond_ns + size_ns) < LEAST_NS for size_ns in settings) else 0

    def is_first_sure(self, part: Part) -> bool:
        """Whether it is known when the first record of a file was written, on the head's clock."""
        # A head and a sampler go on from one process to the next: their clock is told as a whole, or not at all.
        number = 0 if part.rank is None else min(1, len(_hosts_of(part)) - 1)
        apart = self._apart_of(part, number, _hosts_of(part)[number])
        return self._is_known(part, number) and (apart is None or apart.is_steady)

    def is_last_sure(self, part: Part) -> bool:
        """Likewise of the last record."""
        if part is self._first or not self._leading:
            return True
        if self._is_set and part.rank is None:
            return False
        hosts = _hosts_of(part)
        apart = self._apart_of(part, len(hosts) - 1, hosts[-1])
        return self._is_known(part, len(hosts) - 1) and (apart is None or apart.is_steady)

    def _is_known(self, part: Part, number: int) -> bool:
        if part is self._first or not self._leading:
            return True
        host = _hosts_of(part)[number]
        is_told = not host or host in self._leading or self._named(host) in self._examined
        return is_told or self._apart_of(part, number, host) is not None

    def _apart_of(self, part: Part, number: int, host: str | None) -> Apart | None:
        found = self._apart.get(part.name, [])
        if number < len(found) and found[number] is not None:
            return found[number]
        return None if part is self._first or host in self._leading else self._by_host.get(host or "")

    def _maybe_examined(self, host: str | None, time_ns: int) -> int | None:
        held = self._examined.get(self._named(host))
        if not held:
            return None
        known = [offset_s for at_ns, offset_s in held if at_ns <= time_ns - round(1e9 * offset_s)]
        return round(1e9 * (known[-1] if known else held[0][1]))

    def _named(self, host: str | None) -> str:
        return self._names.get(host or "", host or "")

    def _compare(self, parts: Sequence[Part], first: Part) -> None:
        """Compare ranks with the leader, on hosts of which nothing else tells the clock."""
        others = [part for part in parts if part.rank is not None and part is not first and part.steps]
        unknown = [part for part in others if self._is_set or set(_hosts_of(part)[1:]) - self._leading]
        if not unknown or not self._leading or not first.steps:
            return
        abreast = Abreast(first, self.unroll(first).ahead.without(first.steps["time_ns"]))
        for part in unknown:
            found = abreast.of(part, straight_ns(part, self.jumps(part)))
            self._apart[part.name] = found
            for host, apart in zip(_hosts_of(part), found, strict=True):
                if host and apart is not None:
                    self._by_host[host] = apart.beside(self._by_host.get(host))


def _hosts_of(part: Part) -> list[str]:
    """The host of each process of a file, from what comes before the first on."""
    started = [record.event.host for record in part.rare if isinstance(record.event, RunStarted)]
    return [part.host or "", *(started if part.rank is not None else ())]


def _beyond_ns(part: Part) -> int:
    """By how much the first time of a file is more than what the monotonic clock says."""
    return part.rare_at[0][1] - round(1e9 * part.rare[0].clock_s)


def _examine(parts: Sequence[Part]) -> tuple[dict[str, list[tuple[int, float]]], dict[str, str]]:
    """What was told of clocks before training, by the command line's names of hosts; and these by their own."""
    rounds: list[RoundStarted] = []
    processes: dict[int, list[str]] = {}
    examined: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for record in (record for part in parts for record in part.rare):
        match record.event:
            case HostExamined() as event if math.isfinite(event.clock_offset_s):
                examined[event.host].append((record.time_ns, event.clock_offset_s))
            case RoundStarted() as event:
                rounds.append(event)
            case RunStarted() as event if record.rank is not None:
                processes.setdefault(record.rank, []).append(event.host)
    return dict(examined), _match(rounds, processes)


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
