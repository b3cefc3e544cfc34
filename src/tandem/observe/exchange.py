"""What the exchange of gradients costs: the part of a step that a perfect network would save."""

import weakref
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.observe.confidence import Kind
from tandem.observe.mode_of_steps import modes_of
from tandem.observe.probing import Slowing, slowing_of
from tandem.observe.reader_pace import OFTEN
from tandem.observe.series.columns import Series
from tandem.observe.split import StepSplit, split_steps

__all__ = ["Exposure", "measure_exchange"]

Numbers: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

STARVED = 0.95
"""The reader sets the pace where it needs that share of the step."""
ASSUMED_WAIT = 2.5
"""Without probes: what the exchange is assumed to cost at most, in waits for it."""
ASSUMED_SHARE = 0.03
"""Without probes: share of the computing that is assumed to be slowing that no wait shows, at most."""
LONG_WAIT = 5.0
"""A wait of so many median steps may be the network, or a rank that stopped while it waited."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposure:
    """Where a mean step's seconds go, and what of them the exchange costs."""

    split: StepSplit
    ranks: int
    hosts: int
    """Most at any time; 0: not known."""
    step_s: float
    data_s: float
    compute_s: float
    """Forward and backward without what the exchange slows them, and without standstills."""
    stalled_s: float
    """Standstills inside forward and backward."""
    wait_s: float
    """What ranks waited for the network after backward: a lower bound of what the exchange costs."""
    network_s: float
    """What the exchange costs: the wait, and by probes how much it slows the computing beside it.

    In a run that was on several hosts for a part of the time, only what it costs then.
    """
    low_s: float
    """Of network_s, the 95 % interval; it holds what may have happened in steps that were not logged or probed."""
    high_s: float
    slowed_doubt_s: float
    """How far off it may be by how much the exchange slows the mean rank, which compute_s is without."""
    inner_s: float
    """What the exchange costs while all ranks are on one host, in a run that is on several at other times."""
    straggler_s: float
    optimizer_s: float
    other_s: float
    probes: int
    """Pairs of a step with and without exchange; 0: network_s is the lower bound."""
    coverage: float
    """Share of the time in which steps were logged by all ranks and are like those that were probed, where any were."""
    long_wait_s: float
    """Part of the wait that lies in waits of many steps' length."""

    def share(self, seconds: float) -> float:
        """Of the step, from 0 to 1."""
        return seconds / self.step_s if self.step_s else 0.0

    @property
    def kind(self) -> Kind:
        """What the cost of the exchange rests on."""
        return Kind.MEASURED if self.probes or self.ranks == 1 else Kind.BOUND

    @property
    def is_starved(self) -> bool:
        """Whether the reader sets the pace: a faster network would only make ranks wait longer for data."""
        return self.split.reader.is_shown and self.split.reader.batch_s >= STARVED * self.step_s

    @property
    def saved_s(self) -> float:
        """What a network that takes no time would save: its cost, or until the reader of data sets the pace."""
        if self.is_starved:
            return 0.0
        reader = self.split.reader
        # A reader that works ahead and is late often needs nearly the whole step: likelier than that it has time.
        return self.least_saved_s if reader.is_shown or reader.late >= OFTEN else self.network_s

    @property
    def least_saved_s(self) -> float:
        """The same, if readers that were seen late work ahead and are as slow as those waits make them."""
        return min(self.network_s, max(0.0, self.step_s - self.split.reader.batch_s))

    @property
    def late_data_s(self) -> float:
        """Waiting for data and for ranks whose data come late, where that is often: a faster network may shift it."""
        if self.split.reader.late < OFTEN:
            return 0.0
        return self.data_s + (self.straggler_s if self.is_data_late else 0.0)

    @property
    def is_data_late(self) -> bool:
        """Whether the slowest rank is mostly slow because its data come late."""
        return float(np.mean(self.split.late_data_s)) > self.straggler_s / 2

    @property
    def busy_s(self) -> float:
        """Spent on the model's own work."""
        return self.compute_s + self.optimizer_s


_latest: "tuple[weakref.ref[Series], Exposure | None] | None" = None


def measure_exchange(series: Series) -> Exposure | None:
    """Split the mean step; None where too few steps were logged with their phases.

    Several verdicts ask for the same run one after the other, so the last answer is remembered.
    """
    global _latest  # noqa: PLW0603 - a cache of one
    latest = _latest
    if latest is None or latest[0]() is not series:
        latest = weakref.ref(series), _measure(series)
        _latest = latest
    return latest[1]


def _measure(series: Series) -> Exposure | None:
    split = split_steps(series)
    if split is None:
        return None
    slowing = slowing_of(series.probes, split, modes=modes_of(series, split.step))
    cost = split.network_s + slowing.most_s
    low, high = _bounds(split, slowing)
    is_far = split.hosts != 1
    # A run that was never on several hosts is asked what the exchange through its memory costs.
    counted = is_far if is_far.any() else np.ones_like(is_far)
    whole, count = split.whole_s, len(split.step)
    mean_step_s = float(split.step_s.mean())
    compute, straggler = float(split.compute_s.mean()), float(split.straggler_s.mean())
    slowed = float(slowing.most_s.mean())
    # The last rank to arrive is slowed by what the step is longer, the others by their own, and wait less for it.
    own = min(max(slowed - straggler, float(slowing.own_s.mean())), compute) if slowed else 0.0
    return Exposure(
        split=split,
        ranks=split.ranks,
        hosts=_most_hosts(split.hosts),
        step_s=mean_step_s,
        data_s=float(split.data_s.mean()),
        compute_s=compute - own,
        stalled_s=float(split.stalled_s.mean()),
        wait_s=float(split.network_s[counted].sum()) / count,
        network_s=float(cost[counted].sum()) / count,
        low_s=mean_step_s * float(low[counted].sum()) / whole,
        high_s=mean_step_s * (float(high[counted].sum()) + split.unheard_s) / whole,
        slowed_doubt_s=min(own, float(slowing.own_half_s.mean())),
        inner_s=float(cost[~counted].sum()) / count,
        straggler_s=straggler + own - slowed,
        optimizer_s=float(split.optimizer_s.mean()),
        other_s=float(split.other_s.mean()),
        probes=slowing.probes,
        coverage=_coverage(split, slowing, counted),
        long_wait_s=_long_waits(split, counted),
    )


def _bounds(split: StepSplit, slowing: Slowing) -> tuple[Numbers, Numbers]:
    """The least and the most that the exchange may cost in each step."""
    low = split.network_s + np.where(slowing.is_covered, slowing.low_s, 0.0)
    if slowing.probes:
        most = np.where(slowing.is_covered, slowing.high_s, split.compute_s)
        high = split.network_s + np.minimum(most, split.compute_s)
    else:
        high = ASSUMED_WAIT * split.network_s + ASSUMED_SHARE * split.compute_s
        high[split.world == 1] = 0.0
    # A rank that was not heard of may have arrived later, and waited less for the network.
    return np.where(split.is_heard, np.minimum(low, split.step_s), 0.0), np.minimum(high, split.step_s)


def _coverage(split: StepSplit, slowing: Slowing, counted: Flags) -> float:
    is_known = split.is_heard & (slowing.is_covered if slowing.probes else True)
    lacking = float(split.step_s[counted & ~is_known].sum()) + split.unheard_s
    return 1.0 - lacking / split.whole_s


def _long_waits(split: StepSplit, counted: Flags) -> float:
    longest = LONG_WAIT * float(np.median(split.step_s))
    waits = split.network_s[counted]
    return float(waits[waits > longest].sum()) / len(split.step)


def _most_hosts(hosts: Counts) -> int:
    return 0 if (hosts == 0).any() and hosts.max() < 2 else int(hosts.max())
