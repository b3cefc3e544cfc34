"""Which steps stand for a run's pace: all but the first ones after each start, which warm up and compile."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tandem.observe.series.columns import Series
from tandem.runlog.event import EventsDropped, RunStarted

__all__ = ["lost_lines", "steady_steps", "steps_behind", "unlogged_steps"]

MOST_FIRST = 10
"""Steps after a start that may count as first ones."""
SLOW_FIRST = 1.5
"""A step right after the first is one of them while it takes so many times the median of its start."""


def steady_steps(series: Series) -> NDArray[np.bool_]:
    """True for steps at the run's own pace; those without a time are not."""
    durations = series.steps.duration_s
    steady = np.isfinite(durations)
    if not steady.any():
        return steady
    firsts = _first_places(series)
    for first, stop in pairwise([*firsts, len(durations)]):
        # By the pace of this start: another one may have had other ranks.
        own = durations[first:stop][steady[first:stop]]
        if not len(own):
            continue
        near = durations[first + 1 : min(first + MOST_FIRST, stop)] > SLOW_FIRST * float(np.median(own))
        steady[first : first + 1 + (len(near) if near.all() else int(near.argmin()))] = False
    return steady


def steps_behind(series: Series) -> NDArray[np.int64]:
    """How many steps each point stands for: one, but in an imported run all since the point before."""
    steps = series.steps.step
    if series.imported is None or series.imported.step_kind != "mean" or len(steps) == 0:
        return np.ones(len(steps), np.int64)
    before = series.starts[0][1].step if series.starts else 0
    return np.maximum(0, np.diff(steps, prepend=min(before, int(steps[0]))))


def unlogged_steps(series: Series, *, is_between: bool = False) -> int:
    """How many steps were made and left no line, or how many of them lie between some that did.

    Another tool may mean to log a few of its steps only; there it is none.
    """
    steps = series.steps.step
    if series.imported is not None or not len(steps):
        return 0
    first, last = int(steps[0]), int(steps[-1])
    between = last - first + 1 - len(steps)
    if is_between:
        return between
    begun = min((start.step for _, start in series.starts), default=first - 1)
    ended = series.finished.step if series.finished is not None else last
    return between + max(0, first - 1 - begun) + max(0, ended - last)


def lost_lines(series: Series) -> int:
    """Lines of the file that speaks for the run that could not be read, or were never kept."""
    leader = min(series.process_ranks, default=0)
    dropped = (
        mark.event.count
        for mark in series.marks
        if mark.rank == leader and isinstance(mark.event, EventsDropped)
    )
    return series.led_damaged + sum(dropped)


def _first_places(series: Series) -> list[int]:
    """Where starts of training went on, and processes began: the line of a start may be lost."""
    steps = series.steps
    places = {int(np.searchsorted(steps.step, start.step, "right")) for _, start in series.starts}
    leader = min(series.process_ranks, default=0)
    begun = (mark for mark in series.marks if mark.rank == leader and isinstance(mark.event, RunStarted))
    places |= {int(np.searchsorted(steps.time_s, mark.time_s, "right")) for mark in begun}
    return sorted(place for place in {0, *places} if place < len(steps))
