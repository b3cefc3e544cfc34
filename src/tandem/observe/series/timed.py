"""A file of a run's log whose times are on the head's clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tandem.observe.series.ahead import Ahead
from tandem.observe.series.clocks import Clocks
from tandem.observe.series.columns import Counts
from tandem.observe.series.jumps import Jump, settle_samples
from tandem.observe.series.part import Part
from tandem.runlog.record import Record

__all__ = ["Timed", "set_clock"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A file whose times are on the head's clock."""

    part: Part
    ahead: Ahead
    of_process: tuple[int, ...]
    """How far the clock was ahead as each process began."""
    jumps: tuple[Jump, ...]
    sizes_ns: tuple[int, ...]
    """By how much the clock of a sampler's host was set."""
    rare: Sequence[Record]
    first_ns: int | None
    """None where it is not known on the head's clock, likewise the next one."""
    last_ns: int | None

    def probe_ns(self) -> Counts:
        """Times of its probes."""
        probes = self.part.probes
        time_ns: Counts = probes["time_ns"] - np.array(self.of_process, np.int64)[probes["start"]]
        for jump in self.jumps:
            is_after = (probes["start"] == jump.process) & (probes["row"] > jump.row)
            time_ns = time_ns - jump.size_ns * is_after
        return time_ns

    def sample_ns(self) -> Counts:
        """Times of its samples."""
        stretches = self.part.stretches
        time_ns = np.concatenate([each.columns["time_ns"] for each in stretches])
        if self.sizes_ns:
            seconds = np.concatenate([each.columns["seconds"] for each in stretches])
            time_ns = settle_samples(time_ns, seconds, self.sizes_ns)
        return time_ns - self.ahead.ahead_ns[-1]


def set_clock(part: Part, clocks: Clocks) -> Timed:
    """Put the times of a file on the head's clock; the file stays as it is."""
    jumps, unrolled = clocks.jumps(part), clocks.unroll(part)
    held = []
    for number, (record, ahead_ns) in enumerate(zip(part.rare, unrolled.of_rare, strict=True)):
        # A clock that was set back did not stand still.
        time_ns = part.rare_at[number][1] if jumps else record.time_ns
        held.append(replace(record, time_ns=time_ns - ahead_ns) if jumps or ahead_ns else record)
    first_ns = last_ns = None
    if part.first_ns is not None:
        first_ns = part.first_ns - (unrolled.of_rare[0] if held else unrolled.ahead.ahead_ns[0])
        last_ns = (
            _last_ns(part, unrolled.ahead, held) if jumps else part.last_ns - unrolled.ahead.ahead_ns[-1]
        )
    return Timed(
        part=part,
        ahead=unrolled.ahead,
        of_process=unrolled.of_process,
        jumps=jumps,
        sizes_ns=() if part.rank is not None else clocks.sizes_ns(part.host),
        rare=held,
        first_ns=first_ns if clocks.is_first_sure(part) else None,
        last_ns=last_ns if clocks.is_last_sure(part) else None,
    )


def _last_ns(part: Part, ahead: Ahead, rare: Sequence[Record]) -> int:
    """Of a file whose clock was set: its latest time need not be that of its last record."""
    steps = ahead.without(part.steps["time_ns"])[-1:].tolist() if part.steps else []
    latest_ns: int = max([*steps, *(record.time_ns for record in rare)])
    return latest_ns
