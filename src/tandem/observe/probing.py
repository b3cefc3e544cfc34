"""By how much the exchange slows the computing beside it: from probes, for the steps that are like the probed ones."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.observe.series.columns import Probes
from tandem.observe.split import StepSplit, usual
from tandem.observe.statistics import t95

__all__ = ["Slowing", "costs_of_probes", "slowing_of"]

Numbers: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

EARLY = 180
"""The first probes of a run come after ever longer gaps, up to this step."""
REACH = 1.25
"""A probe speaks for steps up to so many usual gaps between probes away."""
ALIKE = 1.5
"""And for those whose computing takes at most so many times as long as that of steps around it."""
HELD_UP, SCATTER = 0.05, 4.0
"""A probe whose computing, with exchange or without, is beyond that of steps around it by more than this share, and by
more than so many times what these scatter, was held up in one of its two passes."""
_LOCAL = 5
"""Probes whose median is the slowing at a place, where there are as many."""
_PRIOR_FREEDOM = 3
_ENOUGH = 4
_MAD = 1.4826


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slowing:
    """What the exchange costs beyond the wait for it, a number a step."""

    most_s: Numbers
    """On the rank that arrives last, the most likely value."""
    low_s: Numbers
    high_s: Numbers
    own_s: Numbers
    """On the mean rank."""
    own_half_s: Numbers
    """How far off that may be."""
    is_covered: Flags
    """Whether a probe speaks for the step."""
    probes: int
    """Steps that all ranks did with and without exchange."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Steps that all ranks did with and without exchange, in order."""

    step: Counts
    row: Counts
    """Of the split, the nearest one."""
    extra_s: Numbers
    """What the exchange costs less the wait: how much it slows the rank that arrives last."""
    own_s: Numbers
    """How much it slows the mean rank."""

    def __len__(self) -> int:
        return len(self.step)

    def of(self, chosen: Flags) -> "_Pairs":
        return _Pairs(
            step=self.step[chosen],
            row=self.row[chosen],
            extra_s=self.extra_s[chosen],
            own_s=self.own_s[chosen],
        )


def costs_of_probes(probes: Probes) -> tuple[Counts, Numbers]:
    """The probed steps, and what the exchange cost each: the slowest rank with it less the slowest without."""
    steps, place = np.unique(probes.step, return_inverse=True)
    together, alone = np.full(len(steps), -np.inf), np.full(len(steps), -np.inf)
    np.maximum.at(together, place, probes.synchronised_s)
    np.maximum.at(alone, place, probes.unsynchronised_s)
    return steps, together - alone


def slowing_of(probes: Probes, split: StepSplit, *, modes: Counts) -> Slowing:
    """Tell the slowing of each step from the probes made with as many ranks on as many hosts, in the same mode."""
    count = len(split.step)
    most, half, own, own_half = (np.zeros(count) for _ in range(4))
    covered = split.world == 1
    pairs = _pairs(probes, split)
    conditions = np.stack([split.world, split.hosts, modes], axis=1)
    for condition in np.unique(conditions[pairs.row], axis=0):
        is_alike = (conditions == condition).all(axis=1)
        rows, part = np.flatnonzero(is_alike), pairs.of(is_alike[pairs.row])
        nearest = _nearest(part.step, split.step[rows])
        local = _local(part.extra_s)
        most[rows], own[rows] = local[nearest], _centre(part.own_s)
        half[rows] = _half(part.extra_s - local, split.slowest_s[rows])
        own_half[rows] = _half(part.own_s - _centre(part.own_s), split.compute_s[rows])
        covered[rows] = _covered(part.step, split.step[rows]) & _is_usual(split.compute_s[rows])
    limit = split.compute_s
    return Slowing(
        most_s=np.clip(most, 0.0, limit),
        low_s=np.clip(most - half, 0.0, limit),
        high_s=np.clip(most + half, 0.0, limit),
        own_s=own,
        # Where no probe speaks for a step, all of it is a guess.
        own_half_s=np.where(covered, np.minimum(own_half, np.abs(own)), np.abs(own)),
        is_covered=covered,
        probes=len(pairs),
    )


def _pairs(probes: Probes, split: StepSplit) -> _Pairs:
    steps, place, count = np.unique(probes.step, return_inverse=True, return_counts=True)
    together, alone = np.full(len(steps), -np.inf), np.full(len(steps), -np.inf)
    wait, own = np.full(len(steps), np.inf), np.zeros(len(steps))
    np.maximum.at(together, place, probes.synchronised_s)
    np.maximum.at(alone, place, probes.unsynchronised_s)
    np.minimum.at(wait, place, probes.exchange_s)
    computing = probes.synchronised_s - probes.exchange_s
    slowest = np.full(len(steps), -np.inf)
    np.maximum.at(slowest, place, computing)
    np.add.at(own, place, computing - probes.unsynchronised_s)
    extra = together - alone - wait
    row = np.minimum(np.searchsorted(split.step, steps), len(split.step) - 1)
    world = split.world[row]
    # A step that something held up while it computed is not like others, nor like the same one done again.
    is_like_others = np.maximum(slowest, alone) <= _most_usual(split)[row]
    kept = (count >= world) & (world > 1) & np.isfinite(extra) & is_like_others
    return _Pairs(step=steps[kept], row=row[kept], extra_s=extra[kept], own_s=own[kept] / count[kept])


def _most_usual(split: StepSplit) -> Numbers:
    """For how long the slowest rank computes in steps that nothing held up, at most."""
    around = usual(split.slowest_s)
    scatter = _MAD * float(np.median(np.abs(split.slowest_s - around)))
    return np.minimum(ALIKE * around, around + np.maximum(HELD_UP * around, SCATTER * scatter))


def _nearest(steps: Counts, at: Counts) -> NDArray[np.int64]:
    middles = (steps[1:] + steps[:-1]) / 2
    return np.searchsorted(middles, at)


def _local(extra: Numbers) -> Numbers:
    """The slowing around each probe: of few probes it is taken to be the same all the time."""
    if len(extra) < _LOCAL:
        return np.full(len(extra), _centre(extra))
    begin = np.clip(np.arange(len(extra)) - _LOCAL // 2, 0, len(extra) - _LOCAL)
    return np.asarray(np.median(extra[begin[:, None] + np.arange(_LOCAL)], axis=1))


def _half(left: Numbers, compute_s: Numbers) -> float:
    """Half of the 95 % interval of the slowing, by what probes scatter.

    The spread of few is known badly: that of computing from step to step stands in for it, of those ranks whose
    computing the probes compare.
    """
    count = len(left)
    is_few = count < _ENOUGH
    prior = _MAD * float(np.median(np.abs(np.diff(compute_s)))) if is_few and len(compute_s) > 1 else 0.0
    prior_freedom = _PRIOR_FREEDOM if is_few else 0
    freedom = prior_freedom + count - 1
    spread = math.sqrt((prior_freedom * prior**2 + _robust_squares(left)) / freedom)
    return t95(freedom) * spread / math.sqrt(count) * (1.25 if count > 2 else 1.0)


def _robust_squares(left: Numbers) -> float:
    """The sum of squares about the median, with what is far out pulled in."""
    away = np.abs(left - np.median(left))
    if len(left) > 2:
        away = np.minimum(away, 3 * _MAD * max(float(np.median(away)), 1e-12))
    return float(np.sum(away**2))


def _covered(steps: Counts, at: Counts) -> Flags:
    """Whether a probe is as near as the next one usually is."""
    gaps = np.sort(np.diff(steps))[::-1]
    # One long gap among short ones is a stretch without probes.
    usual = float(gaps[1] if len(gaps) > 1 and gaps[0] > 3 * gaps[1] else gaps[0] if len(gaps) else steps[0])
    reach = np.where(steps <= EARLY, np.maximum(REACH * usual, 2 * steps), REACH * usual)
    before = np.searchsorted(steps, at, side="right") - 1
    behind = np.where(before >= 0, at - steps[np.maximum(before, 0)] <= reach[np.maximum(before, 0)], False)
    after = np.minimum(before + 1, len(steps) - 1)
    ahead = (steps[after] >= at) & (steps[after] - at <= np.maximum(REACH * usual, steps[0]))
    return np.asarray(behind | ahead)


def _is_usual(compute_s: Numbers) -> Flags:
    return np.asarray(compute_s <= ALIKE * usual(compute_s))


def _centre(values: Numbers) -> float:
    return float(np.median(values)) if len(values) > 2 else float(np.mean(values))
