"""Stretches of a run: steps that one start of training made, with its ranks on its hosts."""

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.observe.facts import fact_count
from tandem.observe.series.columns import Series
from tandem.runlog.event import RoundStarted, RunStarted, TrainingStarted

__all__ = ["Stretches", "host_count", "stretches_of"]

Counts: TypeAlias = NDArray[np.int64]

_START_S = 2.0
"""Processes begin before training does; clocks of hosts may be so far apart."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """Conditions under which each step that stands was made, a number a step."""

    start: Counts
    """Number of the start of training, from 0; -1 where no start is logged."""
    ranks: Counts
    hosts: Counts
    """Hosts at least; 0 where it is not known whether there were several."""


def stretches_of(series: Series) -> Stretches:
    """Tell for each step which start made it, with how many ranks and hosts."""
    step = series.steps.step
    start = np.full(len(step), -1, np.int64)
    ranks = np.full(len(step), series.ranks.ranks, np.int64)
    hosts = np.full(len(step), host_count(series), np.int64)
    for number, (_, started) in enumerate(series.starts):
        later = step > started.step
        start[later] = number
        if started.ranks > 0:
            ranks[later] = started.ranks
        if number + 1 < len(series.starts):
            hosts[later] = _hosts_of_start(series, number)
        else:
            hosts[later] = host_count(series)
    return Stretches(start=start, ranks=ranks, hosts=hosts)


def host_count(series: Series) -> int:
    """Hosts that took part at the last start, at least; 0 where it is not known whether there were several."""
    if series.imported is not None:
        return fact_count(series, "hosts")
    return _count(series.started, series.ranks.hosts, _rounds(series, len(series.starts) - 1))


def _hosts_of_start(series: Series, number: int) -> int:
    """Hosts of an earlier start, by what had been logged when training began."""
    begun_s, started = series.starts[number]
    names: dict[int, str] = {}
    for mark in series.marks:
        if mark.time_s > begun_s + _START_S:
            break
        if isinstance(mark.event, RunStarted) and mark.rank is not None:
            names[mark.rank] = mark.event.host
    hosts = tuple(names.get(rank, "") for rank in range(started.ranks))
    return _count(started, hosts, _rounds(series, number))


def _rounds(series: Series, number: int) -> list[RoundStarted]:
    """The last round before a start, if it began after the start before: a later command may use one host alone."""
    since_s = series.starts[number - 1][0] if number > 0 else -inf
    until_s = series.starts[number][0] + _START_S if 0 <= number < len(series.starts) - 1 else inf
    rounds = [
        mark.event
        for mark in series.marks
        if since_s < mark.time_s <= until_s and isinstance(mark.event, RoundStarted)
    ]
    return rounds[-1:]


def _count(started: TrainingStarted | None, names: tuple[str, ...], rounds: list[RoundStarted]) -> int:
    ranks = started.ranks if started is not None else len(names)
    seen = max(
        len({host for host in names[:ranks] if host}),
        len(set(started.checkpoint_hosts)) if started is not None else 0,
        *(len(event.hosts) for event in rounds),
    )
    # A rank without a log may have been on another host, unless the round says where all of them were.
    is_whole = len(names) >= ranks and all(names[:ranks])
    is_told = any(sum(event.workers.values()) >= ranks for event in rounds)
    return seen if seen > 1 or is_whole or is_told else 0
