"""Fits of curves that fall, and may turn: the gain that more steps promise, and the rise that evaluations hide."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tandem.observe.statistics import Estimate, likeness_factor

__all__ = ["Decay", "Gain", "chance_of_decay", "expect_gains", "rise_by_turns"]

Numbers = NDArray[np.float64]

SEED = 20_140_901
TRIALS = 2_000
LEAST_NOISE = 1e-9
POWERS = np.geomspace(0.1, 2.5, 24)
"""Exponents that a falling curve is tried with."""
TIMES = np.geomspace(0.08, 3.0, 18)
"""Time constants that a falling curve is tried with, in lengths of the run."""
BREAKS = np.linspace(0.3, 1.0, 16)[:-1]
"""Places, as shares of the run, at which a fall may break off."""
BREAKING = 0.2
"""How likely that is taken to be before anything is seen; all places alike."""
TURNS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Places, as shares of the run, at which a fall may turn into a rise."""
TURN_NUMBERS = 5
"""That a fall and a turn are made of, with which fall and which turn."""
TURNED_EVERY = 4
"""Of the ways to fall, those that are tried with a rise."""
BROKEN_EVERY = 3
"""Of the ways to fall, those that are tried broken off."""
DECAYS = np.array((0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1))
DECAYS_EXPECTED = np.array((0.03, 0.05, 0.13, 0.2, 0.2, 0.15, 0.1, 0.07, 0.04, 0.03))
"""Shares of a loss that the whole fall of a learning rate to zero brings, mostly 2 to 7 %, and how likely each is
before anything of that is seen."""
DECAY_BENDS, DECAY_BENDS_EXPECTED = np.array((1.0, 0.5, 2.0)), np.array((0.5, 0.25, 0.25))
"""Exponents of the rate with which that goes: in proportion, mostly at the end of the fall, mostly at its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """By how much a falling curve is expected to fall on, up to a given place."""

    estimate: Estimate
    level: float
    """Of the curve at its end, by the fits."""
    spread: Numbers
    """Draws from what is believed of the gain."""
    by_steps: Numbers
    """The part of each that the steps bring by themselves, without a further fall of the learning rate."""

    def chance_above(self, bound: float) -> float:
        """That the gain is more than this."""
        return float(np.mean(self.spread > bound))

    def chance_by_steps(self, bound: float) -> float:
        """That it is more than this without what a further fall of the learning rate would bring."""
        return float(np.mean(self.by_steps > bound))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """What the learning rate did and will do to a curve, besides the fall that its steps bring."""

    shares: Numbers | None = None
    """Of the undecayed rate, at each point; None where it was the same at all of them."""
    begin: float = 1.0
    """That share at the end of what was run."""
    end: float = 1.0
    """That share at the end of what is planned."""
    scale: float = 1.0
    """What a share of 1 stands for in what is measured: the level of a loss, or some points of a score."""


def rise_by_turns(x: Numbers, y: Numbers, *, floor: float) -> Numbers:
    """Draws of how far the end of a curve lies above its lowest point, by curves that fall and then may rise.

    Each fall and each turn counts as much as it is likely, one that never turns as much as all others together.
    """
    share, freedom = x / x[-1], max(1, len(x) - TURN_NUMBERS)
    falls = _whole_shapes(share)[::TURNED_EVERY]
    turns = np.array([turn for turn in TURNS if (share >= turn).sum() > 1])
    ramps = [np.zeros_like(share), *(np.maximum(0.0, share - turn) / (1 - turn) for turn in turns)]
    before = [1.0, *([1 / len(turns)] * len(turns))]
    known = max(floor, LEAST_NOISE)
    fits = [
        _fit_turn(np.stack([np.ones_like(share), fall, ramp][: 2 + bool(ramp.any())], axis=1), y)
        for ramp in ramps
        for fall in falls
    ]
    weights = np.repeat(before, len(falls))
    errors = np.array([float(fit.left @ fit.left) + known**2 for fit in fits]) / (freedom + 1)
    likeness = likeness_factor(fits[int(errors.argmin())].left)
    chances = weights * (errors / errors.min()) ** (-(freedom + 1) / 2 / likeness**2)
    random = np.random.default_rng(SEED)
    chosen = random.choice(len(chances), TRIALS, p=chances / chances.sum())
    doubt = random.standard_t(freedom + 1, TRIALS) * likeness
    rises, widths = np.array([(fit.rise, fit.width) for fit in fits]).T
    widths = widths * np.sqrt(np.maximum(errors, known**2))
    return np.asarray(rises[chosen] + widths[chosen] * doubt)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One curve that falls and may turn."""

    rise: float
    """Of its end over its lowest point."""
    width: float
    """That rise's doubt, in noises of a point."""
    left: Numbers


def _fit_turn(columns: Numbers, y: Numbers) -> _Turn:
    inverse = np.linalg.pinv(columns.T @ columns)
    heights = inverse @ columns.T @ y
    curve = columns @ heights
    contrast = columns[-1] - columns[int(curve.argmin())]
    return _Turn(
        rise=float(contrast @ heights),
        width=sqrt(max(0.0, float(contrast @ inverse @ contrast))),
        left=y - curve,
    )


def expect_gains(
    x: Numbers,
    y: Numbers,
    *,
    ends: tuple[float, ...],
    floor: float,
    least: float = -np.inf,
    decay: Decay | None = None,
) -> tuple[Gain, ...]:
    """What a falling curve loses between its last point and each of `ends`.

    Power laws and exponentials with an asymptote are fitted by least squares, and the same broken off at some point,
    since many a fall stops short. Each shape counts as much as it is likely, and the spread holds both the doubt
    between shapes and that within each. `floor` is the least noise, and `least` the value below which the curve
    cannot fall.

    What a falling learning rate brought is taken off before the shapes are fitted, for it comes once and does not go
    on; what it is still to bring is added. How much that is, is tried like the shapes.
    """
    decay = decay or Decay()
    shapes, before = _shapes(x / x[-1]), _expected_shapes()
    drops, bends, chances = _decays(decay)
    by_rate = drops * decay.scale
    ahead = by_rate * (decay.begin**bends - decay.end**bends)
    share = decay.shares if decay.shares is not None else np.ones_like(y)
    passed = np.maximum(share, 0.0) ** bends[:, None]
    brought = by_rate[:, None] * (passed - passed[:, -1:])
    # Values that are all the same fit every shape without any error.
    floor = max(floor, LEAST_NOISE)
    freedom = max(1, len(x) - 2) + 1
    fits = _Fits.of(shapes, y - brought)
    errors = (fits.error + floor**2) / freedom
    best = np.unravel_index(int(np.argmin(errors)), errors.shape)
    left = fits.left(y - brought[best[0]], best)
    likeness = likeness_factor(left)
    weights = chances[:, None] * before * (errors / errors[best]) ** (-freedom / 2 / likeness**2)
    random = np.random.default_rng(SEED)
    chosen = random.choice(weights.size, TRIALS, p=weights.ravel() / weights.sum())
    rates, kinds = np.divmod(chosen, len(shapes))
    doubt = random.standard_t(freedom, TRIALS) * likeness
    heights = fits.height[rates, kinds]
    widths = np.sqrt(np.maximum(errors[rates, kinds], floor**2) / fits.weight[kinds])
    level = float(y[-1] - left[-1])
    gains = []
    for end in ends:
        fall = shapes[:, -1] - _shapes(np.array([end / x[-1]]))[:, 0]
        by_steps = (heights + widths * doubt) * fall[kinds]
        spread = np.minimum(by_steps + ahead[rates], level - least)
        low, middle, high = np.quantile(spread, (0.025, 0.5, 0.975))
        estimate = Estimate(value=float(middle), low=float(low), high=float(high))
        gains.append(Gain(estimate=estimate, level=level, spread=spread, by_steps=by_steps))
    return tuple(gains)


def _decays(decay: Decay) -> tuple[Numbers, Numbers, Numbers]:
    """What a fall of the rate may bring, how that goes with the rate, and the chance of each pair."""
    if decay.shares is None and decay.begin <= decay.end:
        return np.zeros(1), np.ones(1), np.ones(1)
    drops, bends = (numbers.ravel() for numbers in np.meshgrid(DECAYS, DECAY_BENDS))
    return drops, bends, np.outer(DECAY_BENDS_EXPECTED, DECAYS_EXPECTED).ravel()


def chance_of_decay(fall: float, share: float) -> float:
    """That a fall of the learning rate by a part of itself brings more than a share of the loss, by what is usual."""
    return float(DECAYS_EXPECTED[fall * DECAYS >= share].sum()) if fall > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fits:
    """Least squares of each shape to each of several curves; a shape that is flat where points are has no height."""

    centred: Numbers
    """A row for each shape."""
    weight: Numbers
    """Sum of squares of the centred shape: what the height's doubt is divided by."""
    height: Numbers
    """A row for each curve, a column for each shape."""
    error: Numbers
    """Sums of squares that are left, in the same order."""

    @classmethod
    def of(cls, shapes: Numbers, curves: Numbers) -> "_Fits":
        """Fit all shapes to all curves."""
        centred = shapes - shapes.mean(axis=1, keepdims=True)
        weight = np.maximum((centred**2).sum(axis=1), LEAST_NOISE)
        levels = curves - curves.mean(axis=1, keepdims=True)
        height = levels @ centred.T / weight
        # One curve at a time: what is left of each point by every fit would be much.
        error = np.stack(
            [
                ((level - heights[:, None] * centred) ** 2).sum(axis=1)
                for level, heights in zip(levels, height, strict=True)
            ]
        )
        return cls(centred=centred, weight=weight, height=height, error=error)

    def left(self, curve: Numbers, place: tuple[np.intp, ...]) -> Numbers:
        """What one fit leaves of each point."""
        return np.asarray(curve - curve.mean() - self.height[place] * self.centred[place[1]])


def _shapes(share: Numbers) -> Numbers:
    """A row for each way to fall, whole and then broken off; `share` is the step as a part of the run."""
    ends = np.minimum(share[None, :], BREAKS[:, None])
    return np.concatenate([_whole_shapes(share), *(_whole_shapes(each)[::BROKEN_EVERY] for each in ends)])


def _whole_shapes(share: Numbers) -> Numbers:
    safe = np.maximum(share, 1e-9)
    powers = safe[None, :] ** -POWERS[:, None]
    decays = np.exp(-safe[None, :] / TIMES[:, None]) / np.exp(-1.0 / TIMES[:, None])
    return np.concatenate([powers, decays])


def _expected_shapes() -> Numbers:
    """How likely each row of the shapes is before anything is seen."""
    whole = len(POWERS) + len(TIMES)
    broken = len(BREAKS) * len(range(0, whole, BROKEN_EVERY))
    return np.repeat([(1 - BREAKING) / whole, BREAKING / broken], [whole, broken])
