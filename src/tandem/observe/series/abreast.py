"""How far clocks of hosts were apart that nobody compared: ranks end each step together, whatever their clocks say."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tandem.observe.series.columns import Counts
from tandem.observe.series.part import Part

__all__ = ["SET_NS", "Abreast", "Apart"]

FEWEST, MOST = 5, 64
"""Steps that both files have, from which clocks are compared, and how many are looked at."""
SAME_NS, SAME_SHARE = 100_000_000, 0.05
"""Clocks nearer than this, and than this share of a step, are the same: ranks need not end a step at one instant."""
SET_NS, DRIFT = 1_000_000_000, 1e-4
"""A clock that by the last steps is off by so much more than by the first, and drifts no faster, was set."""
TIE_NS = 1_000_000
_END = 4 * MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """How far the clock behind some steps was ahead of the leader's."""

    ahead_ns: int
    is_steady: bool
    """Whether it is the same by the first steps and by the last."""

    def beside(self, former: "Apart | None") -> "Apart":
        """The same, steady only if it says what a former one on the host does."""
        is_same = former is None or (former.is_steady and abs(self.ahead_ns - former.ahead_ns) <= SET_NS)
        return replace(self, is_steady=self.is_steady and is_same)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """Steps of one process in order, each once."""

    step: Counts
    time_ns: Counts

    def in_order(self) -> "_Process":
        """Without lines that were gathered twice."""
        if (np.diff(self.step) > 0).all():
            return self
        step, places = np.unique(self.step, return_index=True)
        return _Process(step=step, time_ns=self.time_ns[places])


class Abreast:
    """Compares the times of ranks' steps with those of the leader's."""

    def __init__(self, leader: Part, time_ns: Counts) -> None:
        """`time_ns` are the times of the leader's steps on the head's clock."""
        self._processes = [each.in_order() for each in _split(leader, time_ns)]

    def of(self, part: Part, time_ns: Counts) -> list[Apart | None]:
        """By process of a rank, from what comes before its first start on; None where too few steps are common."""
        mine = [_ends(each).in_order() for each in _split(part, time_ns)]
        is_alike = len(mine) == len(self._processes)
        return [
            _nearest(each, [self._processes[number]] if is_alike else self._processes)
            for number, each in enumerate(mine)
        ]


def _split(part: Part, time_ns: Counts) -> list[_Process]:
    step = part.steps["step"]
    pieces = pairwise([0, *part.starts, len(step)])
    return [_Process(step=step[begin:stop], time_ns=time_ns[begin:stop]) for begin, stop in pieces]


def _ends(process: _Process) -> _Process:
    """The first steps and the last: those between are not looked at."""
    if len(process.step) <= 2 * _END:
        return process
    ends = np.r_[0:_END, len(process.step) - _END : len(process.step)]
    return _Process(step=process.step[ends], time_ns=process.time_ns[ends])


def _nearest(mine: _Process, others: list[_Process]) -> Apart | None:
    """By the process that went at the same pace, step by step; of several, the one whose clock is nearest."""
    found = [each for each in (_compare(mine, other) for other in others) if each is not None]
    if not found:
        return None
    least = min(spread for spread, _ in found)
    alike = [apart for spread, apart in found if spread <= 2 * least + TIE_NS]
    return min(alike, key=lambda apart: abs(apart.ahead_ns))


def _compare(mine: _Process, other: _Process) -> tuple[float, Apart] | None:
    """How much the difference of their times varies, and the difference."""
    if not len(mine.step) or not len(other.step):
        return None
    first = max(int(mine.step[0]), int(other.step[0]))
    last = min(int(mine.step[-1]), int(other.step[-1]))
    begin, stop = np.searchsorted(mine.step, [first, last + 1])
    count = min(MOST, max(FEWEST, int(stop - begin) // 2))
    early = _apart(mine, other, slice(begin, min(begin + count, stop)))
    late = _apart(mine, other, slice(max(begin, stop - count), stop))
    if len(early) < FEWEST or len(late) < FEWEST:
        return None
    ahead_ns = int(np.median(early))
    spread = float(np.median(np.abs(early - ahead_ns)))
    passed_ns = int(mine.time_ns[stop - 1] - mine.time_ns[begin])
    # By the very first ones and the very last: a clock may have been set early on, before most steps of either end.
    set_ns = abs(int(np.median(late[-FEWEST:])) - int(np.median(early[:FEWEST])))
    a_step_ns = float(np.median(np.diff(mine.time_ns[begin : begin + MOST])))
    is_same = abs(ahead_ns) <= max(SAME_NS, SAME_SHARE * a_step_ns)
    return spread, Apart(
        ahead_ns=0 if is_same else ahead_ns, is_steady=set_ns <= SET_NS + DRIFT * abs(passed_ns)
    )


def _apart(mine: _Process, other: _Process, rows: slice) -> Counts:
    steps = mine.step[rows]
    place = np.minimum(np.searchsorted(other.step, steps), len(other.step) - 1)
    is_common = other.step[place] == steps
    differences: Counts = (mine.time_ns[rows] - other.time_ns[place])[is_common]
    return differences
