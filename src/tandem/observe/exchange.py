"""What the exchange of gradients costs: each step's time split, and the part that a perfect network would save."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.observe.reader_pace import ReaderPace, reader_pace
from tandem.observe.series.columns import Probes, RankSteps, Series
from tandem.observe.steady import steady_steps
from tandem.runlog.event import RoundStarted

__all__ = ["Exposure", "StepSplit", "host_count", "measure_exchange", "split_steps"]

Numbers: TypeAlias = NDArray[np.float64]
Short: TypeAlias = NDArray[np.float32]
Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

FEWEST_STEPS = 5
"""With fewer steps after the first ones, nothing is said."""
STALLED = 10.0
"""A step that takes so many medians is an accident, and left out."""
STARVED = 0.95
"""The reader sets the pace where it needs that share of the step."""
UNSEEN = 2.5
"""Without probes: what the exchange may cost against the wait for it, which was seen 60 % too low."""
UNSEEN_SHARE = 0.03
"""Without probes: how much of the computing may be slowing that no wait shows."""

_NORMAL = 1.96
_PRIOR_FREEDOM = 3
_ENOUGH_PROBES = 4
_BLOCKS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepSplit:
    """The steps that are looked at, one after the other; seconds are means over the ranks and add up to the step."""

    step: Counts
    step_s: Numbers
    data_s: Numbers
    compute_s: Numbers
    """Forward and backward."""
    network_s: Numbers
    """The least that a rank waited for the exchange: the last to arrive waits for the network alone. A lower bound."""
    straggler_s: Numbers
    """What ranks waited beyond that: for the last one to arrive."""
    optimizer_s: Numbers
    other_s: Numbers
    last: Counts
    """The rank that arrived last."""
    late_data_s: Numbers
    """How much longer than the mean that rank waited for data."""
    reader: ReaderPace
    ranks: int
    """That took part."""
    is_complete: bool
    """Whether all ranks were logged; if not, waiting for a rank looks like waiting for the network."""
    stalled: int
    """Steps that were left out because they took over ten times the median."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposure:
    """Where a mean step's seconds go, and what of them the exchange costs."""

    split: StepSplit
    ranks: int
    hosts: int
    step_s: float
    data_s: float
    compute_s: float
    """Forward and backward without what the exchange slows them."""
    wait_s: float
    """What ranks waited for the network after backward: a lower bound of what the exchange costs."""
    network_s: float
    """What the exchange costs: the wait, and by probes how much it slows the computing beside it."""
    low_s: float
    """Of network_s, the 95 % interval."""
    high_s: float
    straggler_s: float
    optimizer_s: float
    other_s: float
    probes: int
    """Pairs of a step with and without exchange; 0: network_s is the lower bound."""

    def share(self, seconds: float) -> float:
        """Of the step, from 0 to 1."""
        return seconds / self.step_s if self.step_s else 0.0

    @property
    def is_starved(self) -> bool:
        """Whether the reader sets the pace: a faster network would only make ranks wait longer for data."""
        return self.split.reader.is_shown and self.split.reader.batch_s >= STARVED * self.step_s

    @property
    def saved_s(self) -> float:
        """What a network that takes no time would save: its cost, or until the reader of data sets the pace."""
        if self.is_starved:
            return 0.0
        return self.least_saved_s if self.split.reader.is_shown else self.network_s

    @property
    def least_saved_s(self) -> float:
        """The same, if readers that were seen late work ahead and are as slow as those waits make them."""
        return min(self.network_s, max(0.0, self.step_s - self.split.reader.batch_s))

    @property
    def is_data_late(self) -> bool:
        """Whether the slowest rank is mostly slow because its data come late."""
        return float(np.mean(self.split.late_data_s)) > self.straggler_s / 2

    @property
    def busy_s(self) -> float:
        """Spent on the model's own work."""
        return self.compute_s + self.optimizer_s


def host_count(series: Series) -> int:
    """How many hosts took part, at least; 0 where it is not known, nor whether there were several."""
    if series.imported is not None:
        told = series.imported.facts.get("hosts", 0)
        return int(told) if isinstance(told, int | float) else 0
    rounds = [mark.event for mark in series.marks if isinstance(mark.event, RoundStarted)][-1:]
    started, named = series.started, series.ranks.hosts
    ranks = started.ranks if started is not None else len(named)
    seen = max(
        len({host for host in named if host}),
        len(set(started.checkpoint_hosts)) if started is not None else 0,
        *(len(each.hosts) for each in rounds),
    )
    # A rank without a log may have been on another host, unless the round says where all of them were.
    is_whole = len(named) >= ranks and all(named[:ranks])
    is_told = any(sum(each.workers.values()) >= ranks for each in rounds)
    return seen if seen > 1 or is_whole or is_told else 0


def measure_exchange(series: Series) -> Exposure | None:
    """Split the mean step; None where too few steps were logged with their phases."""
    split = split_steps(series)
    if split is None:
        return None
    compute, wait = _mean(split.compute_s), _mean(split.network_s)
    noise = _mean_error(split.network_s)
    pairs = _pairs(series.probes, ranks=split.ranks)
    slowing, low, high = _slowing(pairs, split=split) if split.ranks > 1 else (0.0, 0.0, 0.0)
    if split.ranks > 1 and not len(pairs):
        high = wait * (UNSEEN - 1) + compute * UNSEEN_SHARE
    slowing, low, high = (min(max(0.0, each), compute) for each in (slowing, low, high))
    # The last rank to arrive is slowed by what the step is longer, the others by their own, and wait less for it.
    own = min(max(slowing - _mean(split.straggler_s), _centre(pairs.own_s)), compute) if slowing else 0.0
    return Exposure(
        split=split,
        ranks=split.ranks,
        hosts=host_count(series),
        step_s=_mean(split.step_s),
        data_s=_mean(split.data_s),
        compute_s=compute - own,
        wait_s=wait,
        network_s=wait + slowing,
        low_s=max(0.0, wait + low - noise) if split.is_complete else 0.0,
        high_s=wait + high + noise,
        straggler_s=_mean(split.straggler_s) + own - slowing,
        optimizer_s=_mean(split.optimizer_s),
        other_s=_mean(split.other_s),
        probes=len(pairs) if split.ranks > 1 else 0,
    )


def split_steps(series: Series) -> StepSplit | None:
    """Split each steady step of the number of ranks that made most of them."""
    ranks, steps = series.ranks, series.steps.step
    if not len(steps) or not ranks.ranks:
        return None
    known = np.isfinite(ranks.phases["exchange"]) & np.isfinite(ranks.phases["backward"])
    count = known.sum(axis=0)
    world = _world_sizes(series, steps)
    usable = (count > 0) & steady_steps(series)
    if not usable.any():
        return None
    size = int(np.bincount(world[usable]).argmax())
    usable &= world == size
    complete = usable & (count >= size)
    is_complete = bool(complete.sum() * 2 >= usable.sum())
    chosen = complete if is_complete else usable
    chosen, stalled = _without_stalls(chosen, series.steps.duration_s)
    if chosen.sum() < FEWEST_STEPS:
        return None
    return _split(ranks, steps=steps, chosen=chosen, size=size, is_complete=is_complete, stalled=stalled)


def _split(
    ranks: RankSteps, *, steps: Counts, chosen: Flags, size: int, is_complete: bool, stalled: int
) -> StepSplit:
    rows = np.isfinite(ranks.phases["exchange"][:, chosen])
    known = rows.sum(axis=0)
    mean: dict[str, Numbers] = {}
    whole = np.zeros(rows.shape, np.float32)
    # One phase at a time: a long run on many ranks fills memory.
    for name, each in ranks.phases.items():
        column = np.nan_to_num(each[:, chosen]) * rows
        mean[name] = column.sum(axis=0, dtype=np.float64) / known
        whole += column
    exchange = np.where(rows, ranks.phases["exchange"][:, chosen], np.inf)
    last = exchange.argmin(axis=0)
    network = np.take_along_axis(exchange, last[None], axis=0)[0].astype(np.float64)
    data = np.nan_to_num(ranks.phases["data"][:, chosen]) * rows
    return StepSplit(
        step=steps[chosen],
        step_s=np.sum(list(mean.values()), axis=0),
        data_s=mean["data"],
        compute_s=mean["forward"] + mean["backward"],
        network_s=network,
        straggler_s=np.maximum(0.0, mean["exchange"] - network),
        optimizer_s=mean["optimizer"],
        other_s=mean["other"],
        last=last.astype(np.int64),
        late_data_s=np.take_along_axis(data, last[None], axis=0)[0] - mean["data"],
        reader=reader_pace(data, whole, is_next=np.diff(steps[chosen]) == 1),
        ranks=size,
        is_complete=is_complete,
        stalled=stalled,
    )


def _world_sizes(series: Series, steps: Counts) -> Counts:
    """How many ranks made each step."""
    sizes = np.full(len(steps), series.ranks.ranks, np.int64)
    for _, start in series.starts:
        if start.ranks > 0:
            sizes[steps > start.step] = start.ranks
    return sizes


def _without_stalls(chosen: Flags, duration_s: Numbers) -> tuple[Flags, int]:
    durations = duration_s[chosen]
    if not np.isfinite(durations).any():
        return chosen, 0
    stalled = chosen & (duration_s > STALLED * np.nanmedian(durations))
    return chosen & ~stalled, int(stalled.sum())


def _slowing(pairs: "_Pairs", *, split: StepSplit) -> tuple[float, float, float]:
    """By how much the exchange costs more than the wait shows, with its interval.

    A difference, not a ratio: the same bytes cross in each step and slow what is computed beside them, however long the
    wait for the rest then is, which may be none at all.
    """
    extra, count = pairs.extra_s, len(pairs)
    if not count:
        return 0.0, 0.0, 0.0
    # The spread of few pairs is known badly: the spread of computing from step to step stands in for it.
    prior = 1.4826 * float(np.median(np.abs(np.diff(split.compute_s)))) if count < _ENOUGH_PROBES else 0.0
    prior_freedom = _PRIOR_FREEDOM if count < _ENOUGH_PROBES else 0
    freedom = prior_freedom + count - 1
    centre = _centre(extra)
    spread = math.sqrt((prior_freedom * prior**2 + _robust_squares(extra)) / freedom)
    half = _student(freedom) * spread / math.sqrt(count) * (1.25 if count > 2 else 1.0)
    return centre, centre - half, centre + half


def _centre(values: Numbers) -> float:
    return float(np.median(values)) if len(values) > 2 else float(np.mean(values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """The steps that all ranks did with and without exchange."""

    extra_s: Numbers
    """Of each, what the exchange truly costs less the wait: how much it slows the rank that arrives last."""
    own_s: Numbers
    """How much it slows the mean rank."""

    def __len__(self) -> int:
        return len(self.extra_s)


def _pairs(probes: Probes, *, ranks: int) -> _Pairs:
    steps, place, count = np.unique(probes.step, return_inverse=True, return_counts=True)
    together, alone = np.full(len(steps), -np.inf), np.full(len(steps), -np.inf)
    wait, own = np.full(len(steps), np.inf), np.zeros(len(steps))
    np.maximum.at(together, place, probes.synchronised_s)
    np.maximum.at(alone, place, probes.unsynchronised_s)
    np.minimum.at(wait, place, probes.exchange_s)
    np.add.at(own, place, probes.synchronised_s - probes.exchange_s - probes.unsynchronised_s)
    extra = together - alone - wait
    kept = (count >= ranks) & np.isfinite(extra)
    return _Pairs(extra_s=extra[kept], own_s=own[kept] / count[kept])


def _robust_squares(values: Numbers) -> float:
    """The sum of squares about the median, with what is far out pulled in."""
    away = np.abs(values - np.median(values))
    if len(values) > 2:
        away = np.minimum(away, 3 * 1.4826 * max(float(np.median(away)), 1e-12))
    return float(np.sum(away**2))


def _mean(values: Numbers) -> float:
    return float(np.mean(values))


def _mean_error(values: Numbers) -> float:
    """Half of the 95 % interval of the mean of a series whose neighbours are alike: by the means of blocks."""
    blocks: Sequence[Numbers] = np.array_split(values, min(_BLOCKS, len(values)))
    means = np.asarray([block.mean() for block in blocks])
    return _student(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))


def _student(freedom: int) -> float:
    """The 97.5 % point of Student's distribution."""
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
