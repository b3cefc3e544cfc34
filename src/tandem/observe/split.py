"""Every step's time split over what its ranks did and waited for."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.observe.reader_pace import ReaderPace, reader_pace
from tandem.observe.series.columns import RankSteps, Series
from tandem.observe.steady import steady_steps, unlogged_steps
from tandem.observe.stretches import Stretches, stretches_of

__all__ = ["StepSplit", "split_steps", "usual"]

Numbers: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

FEWEST_STEPS = 5
"""With fewer steps after the first ones, nothing is said."""
STANDSTILL = 2.0
"""Computing beyond so many times a rank's usual time is a standstill."""
_BLOCK = 64
"""Steps over which a rank's usual time is taken."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepSplit:
    """The steps that are looked at, one after the other; seconds are means over the ranks and add up to the step."""

    step: Counts
    step_s: Numbers
    data_s: Numbers
    compute_s: Numbers
    """Forward and backward, without standstills."""
    slowest_s: Numbers
    """Forward and backward of the rank that took longest, standstills included."""
    stalled_s: Numbers
    """What forward and backward took beyond twice a rank's usual time: something held it up."""
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
    world: Counts
    """How many ranks made each step."""
    hosts: Counts
    """On how many hosts, at least; 0: not known."""
    is_heard: Flags
    """Whether all of them logged it; if not, waiting for a rank looks like waiting for the network."""
    unknown_s: float
    """Time of steps whose phases no rank logged."""
    unlogged_s: float
    """Time of steps that left no line with the leader, by the pace of the others."""
    rank_share: float
    """Of the time of all ranks in all steps, the part that they logged."""

    @property
    def ranks(self) -> int:
        """How many took part for most of the time."""
        return int(np.bincount(self.world, weights=self.step_s).argmax())

    @property
    def whole_s(self) -> float:
        """Time of all steps, logged or not."""
        return float(self.step_s.sum()) + self.unheard_s

    @property
    def unheard_s(self) -> float:
        """Time of steps of which no phase is known."""
        return self.unknown_s + self.unlogged_s

    @property
    def heard(self) -> float:
        """Share of the time for which all ranks logged their phases."""
        return float(self.step_s[self.is_heard].sum()) / self.whole_s

    @property
    def is_complete(self) -> bool:
        """Whether that is most of the time."""
        return self.heard >= 0.5


def split_steps(series: Series) -> StepSplit | None:
    """Split each step at the run's own pace of which phases were logged, whatever befell it."""
    ranks, steps = series.ranks, series.steps
    if not len(steps) or not ranks.ranks:
        return None
    stretches = stretches_of(series)
    known = np.isfinite(ranks.phases["exchange"]) & np.isfinite(ranks.phases["backward"])
    # Rows of ranks that a start did not have are those of another one.
    known &= np.arange(ranks.ranks)[:, None] < stretches.ranks
    is_steady, is_logged = steady_steps(series), known.any(axis=0)
    chosen = is_steady & is_logged
    if chosen.sum() < FEWEST_STEPS:
        return None
    unknown_s = float(steps.duration_s[is_steady & ~is_logged].sum())
    # A stretch of a series has no more than what lies in it.
    pace = float(steps.duration_s[is_steady].mean())
    lost = _Lost(unknown_s=unknown_s, unlogged_s=pace * unlogged_steps(series, is_between=True))
    return _split(ranks, steps.step, stretches, known, chosen=chosen, lost=lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lost:
    """Time of steps of which no phase is known, as StepSplit has it."""

    unknown_s: float
    unlogged_s: float


def _split(
    ranks: RankSteps, steps: Counts, stretches: Stretches, known: Flags, *, chosen: Flags, lost: _Lost
) -> StepSplit:
    rows, world = known[:, chosen], stretches.ranks[chosen]
    count = rows.sum(axis=0)
    mean: dict[str, Numbers] = {}
    whole = np.zeros(rows.shape, np.float32)
    # One phase at a time: a long run on many ranks fills memory.
    for name, spent in ranks.phases.items():
        column = np.nan_to_num(spent[:, chosen]) * rows
        mean[name] = column.sum(axis=0, dtype=np.float64) / count
        whole += column
    exchange = np.where(rows, ranks.phases["exchange"][:, chosen], np.inf)
    last = exchange.argmin(axis=0)
    alone = world == 1
    network = np.take_along_axis(exchange, last[None], axis=0)[0].astype(np.float64)
    network[alone] = 0.0
    data = np.nan_to_num(ranks.phases["data"][:, chosen]) * rows
    stalled, slowest = _standstills(ranks, rows, chosen)
    stalled /= count
    step_s = np.sum(list(mean.values()), axis=0)
    return StepSplit(
        step=steps[chosen],
        step_s=step_s,
        data_s=mean["data"],
        compute_s=mean["forward"] + mean["backward"] - stalled,
        slowest_s=slowest,
        stalled_s=stalled,
        network_s=network,
        straggler_s=np.where(alone, 0.0, np.maximum(0.0, mean["exchange"] - network)),
        optimizer_s=mean["optimizer"],
        other_s=mean["other"] + np.where(alone, mean["exchange"], 0.0),
        last=last.astype(np.int64),
        late_data_s=np.take_along_axis(data, last[None], axis=0)[0] - mean["data"],
        reader=reader_pace(data, whole, is_next=np.diff(steps[chosen]) == 1),
        world=world,
        hosts=stretches.hosts[chosen],
        is_heard=count >= world,
        unknown_s=lost.unknown_s,
        unlogged_s=lost.unlogged_s,
        rank_share=float(
            (step_s * count).sum()
            / ((step_s * world).sum() + (lost.unknown_s + lost.unlogged_s) * float(world.mean()))
        ),
    )


def _standstills(ranks: RankSteps, rows: Flags, chosen: Flags) -> tuple[Numbers, Numbers]:
    """Seconds of each step that computing took beyond twice a rank's usual time, over all ranks; and at most."""
    total, slowest = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for rank, is_known in enumerate(rows):
        if not is_known.any():
            continue
        spent = ranks.phases["forward"][rank, chosen] + ranks.phases["backward"][rank, chosen]
        spent = np.where(is_known, spent, np.median(spent[is_known]))
        total += np.maximum(0.0, spent - STANDSTILL * usual(spent)) * is_known
        np.maximum(slowest, spent * is_known, out=slowest)
    return total, slowest


def usual(values: NDArray[np.floating]) -> Numbers:
    """The median of each value's neighbours, by blocks."""
    blocks = max(1, math.ceil(len(values) / _BLOCK))
    padded = np.concatenate([values, np.full(blocks * _BLOCK - len(values), np.median(values))])
    medians = np.median(padded.reshape(blocks, _BLOCK), axis=1)
    return np.repeat(medians, _BLOCK)[: len(values)]
