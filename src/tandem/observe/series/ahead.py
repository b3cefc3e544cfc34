"""How far the clock of one file's writers was ahead of the head's, step by step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tandem.observe.series.columns import Counts
from tandem.observe.series.jumps import Jump
from tandem.observe.series.part import Part
from tandem.runlog.event import RunStarted

__all__ = ["Ahead", "Unrolled", "unroll"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """How far the clock of one file's writers was ahead, from one start of a process, or setting of it, to the next."""

    rows: tuple[int, ...]
    """Steps before each."""
    ahead_ns: tuple[int, ...]
    """Before the first, and after each."""

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
class Unrolled:
    """How far the clock was ahead of all that a file holds."""

    ahead: Ahead
    of_rare: tuple[int, ...]
    """By rare record."""
    of_process: tuple[int, ...]
    """At the start of each process, from what comes before the first on."""


def unroll(part: Part, jumps: Sequence[Jump], *, base: Callable[[int, str, int], int | None]) -> Unrolled:
    """Go through the processes of a file and the settings of its clock.

    `base` says how far it is ahead as a process begins, by its number, its host and its time; None where it goes on
    as it was.
    """
    left = list(jumps)
    now = base(0, part.host or "", part.first_ns or 0) or 0
    rows, ahead_ns, of_rare, of_process = list[int](), [now], list[int](), [now]
    for number, record in enumerate(part.rare):
        event = record.event
        if isinstance(event, RunStarted) and record.rank is not None:
            begun = base(len(of_process), event.host, record.time_ns)
            now = now if begun is None else begun
            rows.append(part.starts[len(of_process) - 1])
            ahead_ns.append(now)
            of_process.append(now)
        if left and left[0].rare == number:
            now += left[0].size_ns
            rows.append(left.pop(0).row)
            ahead_ns.append(now)
        of_rare.append(now)
    return Unrolled(
        ahead=Ahead(rows=tuple(rows), ahead_ns=tuple(ahead_ns)),
        of_rare=tuple(of_rare),
        of_process=tuple(of_process),
    )
