"""Means over the steady steps of a run that was played, with what its replays say."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import inf

import numpy as np
from benchmarks.truth.world.history import Attempt, History
from benchmarks.truth.world.timing import AS_IT_IS, NO_NETWORK, NO_NETWORK_NO_LOADER, Array, Timing
from numpy.typing import NDArray

__all__ = ["Steady", "incomplete_ranks", "steady"]

_STARVED = 0.02
"""Share of a step from which waiting for data counts."""
_STANDSTILL = 2.0
_Part = tuple[Timing, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Means over the steps that stand, without the first after each start."""

    saved: float
    """Share of the time of steps that a network without time would save, with the same accidents."""
    saved_if_fed: float
    """The same where batches would still be there in time."""
    waited: float
    """Share in which the last rank to arrive waits."""
    on_link: float
    """Share in which gradients are under way."""
    starved: float
    """Share of the steps in which some rank waits for data."""
    computing: float
    """Share of the mean rank's own computing."""
    computing_slowed: float
    """The same with what the exchange slows it."""
    computing_logged: float
    """Of the ranks whose logs are there."""
    tokens_per_s: float
    durations: Array
    """Of rank 0."""
    probes: int


def steady(history: History, attempts: list[Attempt], longest: float = inf) -> Steady:
    """Add up the steps of some of the starts that are not longer than so many medians."""
    parts = [(attempt.timing, history.standing(attempt) & ~attempt.timing.is_first) for attempt in attempts]
    if longest < inf:
        usual = float(np.median(np.concatenate([timing.durations[AS_IT_IS, mask] for timing, mask in parts])))
        parts = [(timing, mask & (timing.durations[AS_IT_IS] <= longest * usual)) for timing, mask in parts]
    durations = np.concatenate([timing.durations[:, mask] for timing, mask in parts], axis=1)
    total = durations.sum(axis=1)
    lost = incomplete_ranks(history)
    all_s = sum(_seconds(timing.duration, mask) for timing, mask in parts)
    own = sum(_seconds(_moving(timing.own, mask) + timing.optimizer, mask) for timing, mask in parts)
    slowed = sum(
        _seconds(_moving(timing.forward + timing.backward, mask) + timing.optimizer, mask)
        for timing, mask in parts
    )
    logged = sum(_seconds(_moving(timing.own, mask) + timing.optimizer, mask, lost) for timing, mask in parts)
    logged_all = sum(_seconds(timing.duration, mask, lost) for timing, mask in parts)
    data = sum(_seconds(timing.data, mask) for timing, mask in parts)
    starved = [(timing.data > _STARVED * timing.duration)[mask].any(axis=1) for timing, mask in parts]
    return Steady(
        saved=float(1 - total[NO_NETWORK] / total[AS_IT_IS]),
        saved_if_fed=float(1 - (total[NO_NETWORK_NO_LOADER] + data) / total[AS_IT_IS]),
        waited=sum(float(timing.exchange[mask].min(axis=1).sum()) for timing, mask in parts) / all_s,
        on_link=sum(_transfer_s(part) for part in parts) / all_s,
        starved=float(np.concatenate(starved).mean()),
        computing=own / all_s,
        computing_slowed=slowed / all_s,
        computing_logged=logged / logged_all,
        tokens_per_s=sum(_tokens(history, *part) for part in parts) / all_s,
        durations=durations[AS_IT_IS],
        probes=sum(int((timing.probed & mask).sum()) for timing, mask in parts),
    )


def _moving(computing: Array, mask: NDArray[np.bool_]) -> Array:
    """Computing without standstills: what lies beyond twice a rank's usual time."""
    if not mask.any():
        return computing
    return np.minimum(computing, _STANDSTILL * np.median(computing[mask], axis=0))


def incomplete_ranks(history: History) -> set[int]:
    """Ranks whose logs are missing, or end early; without the first, whose log is the run's."""
    evidence = history.world.evidence
    return {*evidence.lost_ranks, *(rank for rank, _ in evidence.cut_ranks)} - {0}


def _seconds(phase: Array, mask: NDArray[np.bool_], without: AbstractSet[int] = frozenset()) -> float:
    """Of a phase, by the mean rank."""
    ranks = [rank for rank in range(phase.shape[1]) if rank not in without]
    return float(phase[mask][:, ranks].mean(axis=1).sum())


def _transfer_s(part: _Part) -> float:
    timing, mask = part
    return float(np.diff(timing.transfer[mask]).sum()) if timing.data.shape[1] > 1 else 0.0


def _tokens(history: History, timing: Timing, mask: NDArray[np.bool_]) -> int:
    steps = np.arange(timing.first_step, timing.first_step + len(mask))[mask]
    return int(history.tokens[steps - 1].sum())
