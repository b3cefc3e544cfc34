"""How fast readers of data can go: found out from the waits of ranks whose reader, working ahead, fell behind."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.observe.statistics import Estimate, slope_of

__all__ = ["OFTEN", "ReaderPace", "reader_pace"]

Short: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]

NOTABLE_WAIT = 0.02
"""Share of the step from which a rank is said to have waited for data."""
OFTEN = 0.25
"""Share of the steps with such a wait below which readers are late by accident."""
FOLLOWING = -0.25
"""Slope of a wait for data on the step before: -1 where a reader works ahead and is behind, 0 where it begins then."""
FEWEST_WAITS = 10
FEWEST_AGAIN = 0.05
"""Share of waits that are followed by another from which the mean reader can be told.

Where that is seldom, a mean told so is rough. It takes sureness from an answer then, and gives none.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderPace:
    """What the slowest reader needs for a step."""

    batch_s: float
    """Mean time for what a rank takes in a step, if its reader works ahead; 0 where it does not, or is never behind."""
    is_shown: bool
    """Whether it does work ahead and is behind often: then no step can be shorter for long."""
    late: float
    """Share of the steps in which some rank waited for data."""


def reader_pace(data: Short, whole: Short, *, is_next: Flags) -> ReaderPace:
    """Tell the pace from waits for data and whole steps, a row a rank; `is_next` where a step follows the one before.

    A reader that is behind begins the next batch as it hands one over. So after a wait, the next batch takes the rest
    of that step and the next wait; or no longer than the rest, where there is no next wait.
    """
    late = data > NOTABLE_WAIT * whole
    share = float(late.any(axis=0).mean())
    follows = late[:, :-1] & is_next
    rest, wait = (whole - data)[:, :-1], np.where(late[:, 1:], data[:, 1:], 0.0)
    pairs = [
        (rest[rank, each], wait[rank, each])
        for rank, each in enumerate(follows)
        if each.sum() >= FEWEST_WAITS
    ]
    if not pairs:
        return ReaderPace(batch_s=0.0, is_shown=False, late=share)
    slope = _slope(pairs)
    if slope.low > FOLLOWING:
        return ReaderPace(batch_s=0.0, is_shown=False, late=share)
    least = NOTABLE_WAIT * float(whole.mean())
    return ReaderPace(
        batch_s=max(_mean_batch(*pair, least=least) for pair in pairs),
        is_shown=share >= OFTEN and slope.high < 0 and slope.value <= FOLLOWING,
        late=share,
    )


def _slope(pairs: list[tuple[Short, Short]]) -> Estimate:
    """Of waits on the steps before, within ranks; a longer step shortens only those waits that there are."""
    x, y = (
        np.concatenate([each - each.mean() for each in side]).astype(np.float64)
        for side in zip(*pairs, strict=True)
    )
    again = float(np.mean(np.concatenate([wait for _, wait in pairs]) > 0))
    found = slope_of(x, y / max(again, 1.0 / len(y)))
    # Steps that are all alike tell nothing.
    return found if np.isfinite(found.value) else Estimate(value=0.0, low=-np.inf, high=np.inf)


def _mean_batch(rest: Short, wait: Short, *, least: float) -> float:
    """The mean of a normal distribution of which only what exceeds the rest of the step by `least` is seen."""
    again = wait > 0
    seen = min(float(again.mean()), 1 - 0.5 / len(again))
    if seen < FEWEST_AGAIN:
        return 0.0
    border = NormalDist().inv_cdf(1 - seen)
    beyond = max(0.0, float(wait[again].mean()) - least)
    spread = beyond / (NormalDist().pdf(border) / seen - border)
    return float(rest.mean()) + least - border * spread
