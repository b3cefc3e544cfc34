"""Clocks that were set while a process ran: its monotonic clock went on, and tells by how much."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tandem.observe.series.columns import Counts
from tandem.observe.series.part import Part
from tandem.runlog.event import HostDescribed, RunStarted

__all__ = ["LEAST_NS", "Jump", "doubtful_ns", "find_jumps", "settle_samples", "straight_ns"]

LEAST_NS, SLEWED = 500_000_000, 1e-3
"""A clock differs by so much more than by what it is slewed, where it was set."""
MOST = 3
"""A clock that was set more often is not believed to be one clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A clock was set."""

    process: int
    """In which process of the file, from 1 on; 0 is what comes before the first start."""
    rare: int
    """The first rare record after it."""
    row: int
    """The first step after it."""
    size_ns: int
    """Negative where it was set back."""


def find_jumps(part: Part, *, known_ns: Sequence[int] = ()) -> tuple[Jump, ...]:
    """In the order of the file.

    Between two processes a host may have been started anew, or asleep: there, only what another file of the host
    saw within a process counts, of which `known_ns` has the sizes.
    """
    found, process, host = [], 0, ""
    for rare, after in enumerate(part.rare):
        event, before = after.event, part.rare[max(0, rare - 1)]
        size_ns, passed_s = _beyond_ns(part, max(0, rare - 1), rare), after.clock_s - before.clock_s
        if isinstance(event, RunStarted):
            process += after.rank is not None
            is_one = event.host == host and any(abs(size_ns - each) < LEAST_NS for each in known_ns)
            host = event.host
        else:
            is_one = not isinstance(event, HostDescribed) and after.sequence > before.sequence
        if is_one and passed_s > 0 and abs(size_ns) > LEAST_NS + SLEWED * 1e9 * passed_s:
            row = _row_of(part, rare, size_ns=size_ns)
            found.append(Jump(process=process, rare=rare, row=row, size_ns=size_ns))
    return tuple(found) if len(found) <= MOST else ()


def doubtful_ns(part: Part) -> int:
    """How much time between processes of a host that was not started anew its monotonic clock does not know of.

    Its clock was set, or it was asleep.
    """
    total_ns, host = 0, None
    for rare, after in enumerate(part.rare):
        if not isinstance(after.event, RunStarted):
            continue
        if rare and host == after.event.host:
            size_ns = _beyond_ns(part, rare - 1, rare)
            passed_ns = part.rare_at[rare][1] - part.rare_at[rare - 1][1]
            was_up = after.clock_s > max(part.rare[rare - 1].clock_s, passed_ns / 1e9)
            is_much = abs(size_ns) > LEAST_NS + SLEWED * abs(passed_ns)
            total_ns += abs(size_ns) if was_up and is_much else 0
        host = after.event.host
    return total_ns


def _beyond_ns(part: Part, first: int, second: int) -> int:
    """By how much more time passed between two records than their monotonic clock says."""
    passed_s = part.rare[second].clock_s - part.rare[first].clock_s
    return part.rare_at[second][1] - part.rare_at[first][1] - round(1e9 * passed_s)


def _row_of(part: Part, rare: int, *, size_ns: int) -> int:
    """The first step, between a rare record and the one before, that was written after the clock was set."""
    (first, begun_ns), (stop, ended_ns) = part.rare_at[rare - 1], part.rare_at[rare]
    if first >= stop:
        return stop
    time_ns, duration_ns = part.steps["time_ns"][first:stop], 1e9 * part.steps["duration_s"][first:stop]
    off = np.abs(np.nan_to_num(np.diff(time_ns) - duration_ns[1:], nan=np.inf) - size_ns)
    if len(off) and off.min() < abs(size_ns) / 2:
        return first + 1 + int(off.argmin())
    # Before the first step or after the last: where there is more time than there should be, or less than none.
    before_ns, after_ns = (
        float(time_ns[0] - begun_ns - np.nan_to_num(duration_ns[0])),
        float(ended_ns - time_ns[-1]),
    )
    return first if (before_ns > after_ns) == (size_ns > 0) else stop


def settle_samples(time_ns: Counts, seconds: Iterable[float], jumps: Sequence[int]) -> Counts:
    """Times of samples as if their host's clock had not been set by these amounts."""
    settled = time_ns.copy()
    if len(settled) < 2:
        return settled
    for size_ns in jumps:
        beyond = np.diff(settled) - 1e9 * np.asarray(seconds, np.float64)[1:]
        off = np.abs(beyond - size_ns)
        if off.min() < abs(size_ns) / 2:
            settled[int(off.argmin()) + 1 :] -= size_ns
    return settled


def straight_ns(part: Part, jumps: Iterable[Jump]) -> Counts:
    """Times of a file's steps as if its clock had not been set within its processes."""
    time_ns: Counts = part.steps["time_ns"]
    row = np.arange(len(time_ns))
    for jump in jumps:
        stop = part.starts[jump.process] if jump.process < len(part.starts) else len(time_ns)
        time_ns = time_ns - jump.size_ns * ((row >= jump.row) & (row < stop))
    return time_ns
