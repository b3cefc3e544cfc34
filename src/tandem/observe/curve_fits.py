"""Fits of curves that fall, and may turn: the gain that more steps promise, and the rise that evaluations hide."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tandem.observe.curve_shapes import Clock, Ways, read_ways, two_clocks, whole_shapes
from tandem.observe.statistics import Estimate, likeness_factor

__all__ = ["Decay", "Gain", "Turned", "chance_of_decay", "expect_gains", "rise_by_turns"]

Numbers = NDArray[np.float64]

SEED = 20_140_901
TRIALS = 2_000
LEAST_NOISE = 1e-9
TURNS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Places, as shares of the run, at which a fall may turn into a rise."""
LATE_TURNS = (3, 4, 6)
"""And points from the end, at which it may turn after the last of these places."""
TURN_NUMBERS = 5
"""That a fall and a turn are made of, with which fall and which turn."""
NO_LAW = 0.2
"""Relative doubt of any gain, however well a curve fits: none of these laws is quite that of the run."""
FALL_COLUMNS = 2
"""Of a curve that does not turn: its level and its fall."""
TURNED_EVERY = 7
"""Of the ways to fall, those that are tried with a rise."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """How far the end of a curve lies above its lowest point."""

    spread: Numbers
    """Draws from what is believed of that, by how likely each turn is."""
    rises: Numbers
    """By the closest curve for each place of a turn, as if it was known that it turned there."""
    doubts: Numbers
    """Standard deviations of these."""

    def chance_hidden(self, bound: float) -> float:
        """That the rise is more than this if the curve did turn, at the place at which that shows least.

        However seldom curves turn just there: this is what the points themselves can rule out.
        """
        chances = [
            1 - NormalDist(rise, max(doubt, LEAST_NOISE)).cdf(bound)
            for rise, doubt in zip(self.rises.tolist(), self.doubts.tolist(), strict=True)
        ]
        return max(chances, default=1.0)


def rise_by_turns(x: Numbers, y: Numbers, *, floor: float, by_rates: Clock | None = None) -> Turned:
    """How far the end of a curve lies above its lowest point, by curves that fall and then may rise.

    Each fall and each turn counts as much as it is likely, one that never turns as much as all others together.
    `by_rates` is the sum of the learning rates, the other clock by which the curve may fall; turns come with the steps.
    """
    share, freedom = x / x[-1], max(1, len(x) - TURN_NUMBERS)
    clocks = two_clocks(Clock(at=x, ends=()), by_rates)
    shapes = [whole_shapes(clock.shares)[::TURNED_EVERY] for clock, _ in clocks]
    falls, trust = np.concatenate(shapes), np.repeat([trust for _, trust in clocks], len(shapes[0]))
    turns = _turns(share)
    ramps = [np.zeros_like(share), *(np.maximum(0.0, share - turn) / (1 - turn) for turn in turns)]
    before = [1.0, *([1 / max(1, len(turns))] * len(turns))]
    known = max(floor, LEAST_NOISE)
    fits = [
        _fit_turn(np.stack([np.ones_like(share), fall, ramp][: 2 + bool(ramp.any())], axis=1), y)
        for ramp in ramps
        for fall in falls
    ]
    weights = np.outer(before, trust).ravel()
    errors = np.array([float(fit.left @ fit.left) + known**2 for fit in fits]) / (freedom + 1)
    likeness = likeness_factor(fits[int(errors.argmin())].left)
    chances = weights * (errors / errors.min()) ** (-(freedom + 1) / 2 / likeness**2)
    random = np.random.default_rng(SEED)
    chosen = random.choice(len(chances), TRIALS, p=chances / chances.sum())
    doubt = random.standard_t(freedom + 1, TRIALS) * likeness
    rises, widths = np.array([(fit.rise, fit.width) for fit in fits]).T
    widths = widths * np.sqrt(np.maximum(errors, known**2))
    # The first row has no turn.
    best = [
        row * len(falls) + int(errors[row * len(falls) :][: len(falls)].argmin())
        for row in range(1, len(ramps))
    ]
    return Turned(
        spread=np.maximum(0.0, rises[chosen] + widths[chosen] * doubt),
        rises=rises[best],
        doubts=widths[best] * likeness,
    )


def _turns(share: Numbers) -> Numbers:
    """Where a curve may turn, so that points after it can show it: however late that is, and however many there are."""
    late = sorted({float(share[-back]) for back in LATE_TURNS if back < len(share)})
    places = (*TURNS, *(place for place in late if place > TURNS[-1]))
    return np.array([turn for turn in places if (share >= turn).sum() > 1 and share[0] <= turn])


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
    place = int(curve.argmin())
    if place == len(y) - 1 and columns.shape[1] > FALL_COLUMNS:
        # A fall that may hide a rise: no rise since the turn is the closest, and not known without a doubt.
        place = int(np.flatnonzero(columns[:, -1] <= 0)[-1])
    contrast = columns[-1] - columns[place]
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
    by_rates: Clock | None = None,
) -> tuple[Gain, ...]:
    """What a falling curve loses between its last point and each of `ends`.

    Power laws and exponentials with an asymptote are fitted by least squares, the same broken off at some point, since
    many a fall stops short, and the same turning into a rise. Each way counts as much as it is likely, and the spread
    holds both the doubt between ways and that within each. `floor` is the least noise, and `least` the value below
    which the curve cannot fall.

    What a falling learning rate brought is taken off before the ways are fitted, for it comes once and does not go
    on; what it is still to bring is added. How much that is, is tried like the ways.

    `by_rates` is the sum of the learning rates, the other clock by which the curve may fall.
    """
    decay = decay or Decay()
    drops, bends, chances = _decays(decay)
    by_rate = drops * decay.scale
    ahead = by_rate * (decay.begin**bends - decay.end**bends)
    share = decay.shares if decay.shares is not None else np.ones_like(y)
    passed = np.maximum(share, 0.0) ** bends[:, None]
    brought = by_rate[:, None] * (passed - passed[:, -1:])
    # Values that are all the same fit every way without any error.
    floor = max(floor, LEAST_NOISE)
    freedom = max(1, len(x) - 2) + 1
    ways = read_ways(Clock(at=x, ends=ends), by_rates)
    # As it was seen: what a rate is only assumed to have brought is no evidence of a rise.
    fits = _Fits.of(ways, y - brought, has_risen=bool(y[-1] > y.min()))
    errors = (fits.error + floor**2) / freedom
    best = np.unravel_index(int(np.argmin(errors)), errors.shape)
    left = _left(ways, y - brought[best[0]], int(best[1]))
    likeness = likeness_factor(left)
    weights = chances[:, None] * ways.chance * (errors / errors[best]) ** (-freedom / 2 / likeness**2)
    weights *= fits.chance_of_turn(np.sqrt(errors))
    random = np.random.default_rng(SEED)
    chosen = random.choice(weights.size, TRIALS, p=weights.ravel() / weights.sum())
    rates, kinds = np.divmod(chosen, weights.shape[1])
    doubt = random.standard_t(freedom, TRIALS) * likeness
    laws = np.exp(NO_LAW * random.standard_normal(TRIALS))
    noise = np.sqrt(np.maximum(errors[rates, kinds], floor**2))
    level = float(y[-1] - left[-1])
    gains = []
    for number in range(len(ends)):
        value, width = fits.gain(number)
        by_steps = (value[rates, kinds] + noise * width[kinds] * doubt) * laws
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
    """Least squares of each way to each of several curves: the height of its fall, and of its rise after a turn.

    A fall that is flat where points are has no height.
    """

    fall: Numbers
    """Heights: a row for each curve, a column for each way."""
    turn: Numbers
    error: Numbers
    """Sums of squares that are left, in the same order."""
    inverse: Numbers
    """For each way the variances of both heights, and between them what they have in common, in noises of a point."""
    ahead: Numbers
    """For each way and end, by how much its fall and its turn are lower there than at the last point."""
    turns: NDArray[np.bool_]
    rising: NDArray[np.bool_]
    """Whether the last point lies above the one before by the fit, and above the lowest as it was seen."""

    @classmethod
    def of(cls, ways: Ways, curves: Numbers, *, has_risen: bool) -> "_Fits":
        """Fit all ways to all curves."""
        points = curves.shape[1]
        fall, turn = ways.fall[:, :points], ways.turn[:, :points]
        fall, turn = (each - each.mean(axis=1, keepdims=True) for each in (fall, turn))
        levels = curves - curves.mean(axis=1, keepdims=True)
        falls, turns = (np.maximum((each**2).sum(axis=1), LEAST_NOISE) for each in (fall, turn))
        both = (fall * turn).sum(axis=1)
        inverse = np.stack([turns, -both, falls]) / np.maximum(falls * turns - both**2, LEAST_NOISE**2)
        by_fall, by_turn = levels @ fall.T, levels @ turn.T
        heights = by_fall * inverse[0] + by_turn * inverse[1], by_fall * inverse[1] + by_turn * inverse[2]
        whole = (levels**2).sum(axis=1, keepdims=True)
        ahead = [each[:, points - 1 : points] - each[:, points:] for each in (ways.fall, ways.turn)]
        last = [each[:, -1] - each[:, -2] for each in (fall, turn)]
        return cls(
            fall=heights[0],
            turn=heights[1],
            # The difference of two large numbers may be less than nothing.
            error=np.maximum(whole - heights[0] * by_fall - heights[1] * by_turn, LEAST_NOISE**2 * whole),
            inverse=inverse,
            ahead=np.stack(ahead),
            turns=np.asarray(ways.turn.any(axis=1)),
            rising=(heights[0] * last[0] + heights[1] * last[1] > 0) & has_risen,
        )

    def gain(self, end: int) -> tuple[Numbers, Numbers]:
        """What each way brings up to an end, for each curve, and the doubt of it in noises of a point."""
        fall, turn = self.ahead[:, :, end]
        one, both, other = self.inverse
        width = np.sqrt(np.maximum(fall**2 * one + 2 * fall * turn * both + turn**2 * other, 0.0))
        return self.fall * fall + self.turn * turn, width

    def chance_of_turn(self, noise: Numbers) -> Numbers:
        """How likely the rise after each turn is: any size as likely as its double.

        The range of heights that fit takes that much of all that there were before anything was seen. A turn after
        which the curve goes on falling is a bend of some other fall, and says nothing of a rise to come.
        """
        doubt = np.maximum(noise * np.sqrt(np.maximum(self.inverse[2], 0.0)), LEAST_NOISE)
        is_risen = (self.turn > 0) & self.rising
        return np.where(self.turns, is_risen * doubt / (doubt + np.where(is_risen, self.turn, 0.0)), 1.0)


def _left(ways: Ways, curve: Numbers, way: int) -> Numbers:
    """What one way leaves of each point."""
    points = len(curve)
    columns = np.stack([np.ones(points), ways.fall[way, :points], ways.turn[way, :points]], axis=1)
    heights, *_ = np.linalg.lstsq(columns, curve, rcond=None)
    return np.asarray(curve - columns @ heights)
