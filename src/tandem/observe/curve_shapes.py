"""The ways in which a learning curve may fall, break off and turn, before its level and height are known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clock", "Ways", "read_ways", "two_clocks", "whole_shapes"]

Numbers = NDArray[np.float64]

POWERS = np.geomspace(0.1, 2.5, 16)
"""Exponents that a falling curve is tried with."""
HEAD_STARTS = (0.0, 0.05, 0.2, 1.0)
"""Lengths of the run that the law of a power may have begun before it."""
TIMES = np.geomspace(0.08, 3.0, 14)
"""Time constants that a falling curve is tried with, in lengths of the run."""
STRETCHES = (0.5, 0.75, 1.0)
"""Exponents of the time of an exponential: what is hard is learnt later."""
BREAKS = np.linspace(0.3, 1.0, 16)[:-1]
"""Places, as shares of the run, at which a fall may break off."""
BREAKING = 0.2
"""How likely that is taken to be before anything is seen; all places alike."""
BROKEN_EVERY = 7
"""Of the ways to fall, those that are tried broken off, and with a turn."""
TURNS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
"""Places, as shares of the run, at which a fall may turn into a rise."""
TURNING = 0.2
"""How likely that is taken to be before anything is seen; all places alike."""
BEFORE_TURN, AFTER_TURN = 3, 2
"""Points that it takes to see a fall and a turn."""
BY_RATES = 0.75
"""How likely it is, before anything is seen, that a curve falls with the sum of the learning rates, not with steps.

At a rate of next to nothing next to nothing is learnt, so that any loss stands still at the end of a plan, whatever
there is left to learn."""
ALIKE = 0.01
"""Difference, as a share of the run, up to which two clocks show the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How far training has come at each point, and at each place that the curve is continued to, in any unit."""

    at: Numbers
    ends: tuple[float, ...]

    @property
    def shares(self) -> Numbers:
        """Of the run, the points first and then the ends."""
        return np.asarray(np.array([*self.at, *self.ends]) / self.at[-1])

    def is_like(self, other: "Clock") -> bool:
        """Whether both show the same share of the run everywhere."""
        return bool(np.abs(self.shares - other.shares).max() <= ALIKE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Rows of shapes by which a curve may go, at its points and then at the places it is continued to."""

    fall: Numbers
    turn: Numbers
    """A straight line up from the turn on; noughts where the way has none."""
    chance: Numbers
    """How likely each is before anything is seen."""


def two_clocks(by_steps: Clock, by_rates: Clock | None) -> list[tuple[Clock, float]]:
    """The clocks by which a curve may fall, and how likely each is; one where both show the same."""
    if by_rates is None or by_rates.is_like(by_steps):
        return [(by_steps, 1.0)]
    return [(by_steps, 1 - BY_RATES), (by_rates, BY_RATES)]


def read_ways(by_steps: Clock, by_rates: Clock | None) -> Ways:
    """All ways by one clock or by two; a turn comes with the steps."""
    parts = [_ways(clock, by_steps, trust) for clock, trust in two_clocks(by_steps, by_rates)]
    return Ways(
        fall=np.concatenate([part.fall for part in parts]),
        turn=np.concatenate([part.turn for part in parts]),
        chance=np.concatenate([part.chance for part in parts]),
    )


def _ways(clock: Clock, by_steps: Clock, trust: float) -> Ways:
    points, share = len(clock.at), by_steps.shares
    whole = whole_shapes(clock.shares)
    some = whole[::BROKEN_EVERY]
    broken = np.concatenate(
        [whole_shapes(np.minimum(clock.shares, place))[::BROKEN_EVERY] for place in BREAKS]
    )
    ramps = [
        np.maximum(0.0, share - turn) / (1 - turn)
        for turn in TURNS
        if (share[:points] > turn).sum() >= AFTER_TURN and (share[:points] <= turn).sum() >= BEFORE_TURN
    ]
    straight = np.zeros((len(whole) + len(broken), len(share)))
    turned = [np.repeat(ramp[None, :], len(some), axis=0) for ramp in ramps]
    turning = TURNING * len(ramps) / len(TURNS)
    sizes = [len(whole), len(broken), len(some) * len(ramps)]
    chances = [(1 - BREAKING) * (1 - turning), BREAKING * (1 - turning), turning]
    chance = np.repeat([each / max(1, size) for each, size in zip(chances, sizes, strict=True)], sizes)
    return Ways(
        fall=np.concatenate([whole, broken, *([some] * len(ramps))]),
        turn=np.concatenate([straight, *turned]),
        chance=trust * chance,
    )


def whole_shapes(share: Numbers) -> Numbers:
    """A row for each way to fall that goes on; `share` is how far training has come, as a part of the run."""
    safe = np.maximum(share, 1e-9)
    powers = [((safe + head) / (1 + head))[None, :] ** -POWERS[:, None] for head in HEAD_STARTS]
    decays = [
        np.exp(TIMES[:, None] ** -each - (safe[None, :] / TIMES[:, None]) ** each) for each in STRETCHES
    ]
    return np.concatenate([*powers, *decays])
