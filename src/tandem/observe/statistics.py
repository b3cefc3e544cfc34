"""Statistics of curves: levels and slopes with intervals, noise, and rises that are more than noise."""

from dataclasses import dataclass
from math import e, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Estimate",
    "Rise",
    "block_means",
    "change_of",
    "likeness_factor",
    "measure_rise",
    "median_with_interval",
    "noise_of",
    "ratio_by_blocks",
    "slope_of",
    "t95",
]

Numbers = NDArray[np.float64]

SEED = 20_140_901
TRIALS = 2_000
Z95 = 1.959964
LEAST_NOISE = 1e-9
SMALL_SAMPLE_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
FEWEST_FOR_LIKENESS = 12
BEND_NUMBERS = 5
"""That a curve which falls and turns is made of."""
SCALE = 1.4826
"""Of a median absolute deviation, to make it a standard deviation; of the lowest quarter in what follows."""
QUARTER_SCALE = 3.1388


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """How far a curve lies above its lowest point."""

    value: float
    low: float
    high: float
    chance: float
    """That noise alone makes a curve that never rises look like this."""
    lowest: int
    """Place of the lowest point."""

    @property
    def reality(self) -> float:
        """The most that such a chance says for a rise, if it was as likely as none before (Sellke, Bayarri, Berger)."""
        if self.chance >= 1 / e:
            return 1 / 2
        return 1 / (1 - e * self.chance * log(self.chance))


def block_means(x: Numbers, y: Numbers, *, blocks: int) -> tuple[Numbers, Numbers]:
    """Means of neighbours, in at most so many blocks; what is not finite is left out."""
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    edges = np.linspace(0, len(x), min(blocks, len(x)) + 1).astype(np.int64)
    if len(edges) < 2:
        return x, y
    sizes = np.diff(edges)
    return np.add.reduceat(x, edges[:-1]) / sizes, np.add.reduceat(y, edges[:-1]) / sizes


def median_with_interval(values: Numbers) -> Estimate:
    """The median, with the interval of order statistics widened for neighbours that are alike."""
    ordered = np.sort(values[np.isfinite(values)])
    count = len(ordered)
    if count == 0:
        return Estimate(value=np.nan, low=np.nan, high=np.nan)
    half = Z95 * sqrt(count) / 2 * likeness_factor(values[np.isfinite(values)])
    low, high = int(max(0, np.floor(count / 2 - half))), int(min(count - 1, np.ceil(count / 2 + half)))
    return Estimate(value=float(np.median(ordered)), low=float(ordered[low]), high=float(ordered[high]))


def ratio_by_blocks(above: Numbers, below: Numbers, *, blocks: int) -> Estimate:
    """The sum of one column over that of another, with an interval from how stretches of neighbours scatter.

    Stretches are long, so that what makes neighbours alike is inside them; where they are still alike it widens.
    """
    edges = np.linspace(0, len(above), min(blocks, len(above)) + 1).astype(np.int64)[:-1]
    tops, bottoms = (np.add.reduceat(column, edges) for column in (above, below))
    value = float(tops.sum() / bottoms.sum())
    left = tops - value * bottoms
    spread = sqrt(float(left @ left) * len(edges) / max(1, len(edges) - 1)) / float(bottoms.sum())
    half = t95(len(edges) - 1) * spread * likeness_factor(left)
    return Estimate(value=value, low=value - half, high=value + half)


def slope_of(x: Numbers, y: Numbers) -> Estimate:
    """Least-squares slope; its interval is widened for noise that is alike from one point to the next."""
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    if len(x) < 3 or np.ptp(x) == 0:
        return Estimate(value=np.nan, low=-np.inf, high=np.inf)
    centred = x - x.mean()
    value = float(centred @ y / (centred @ centred))
    left = y - y.mean() - value * centred
    error = sqrt(float(left @ left) / (len(x) - 2) / float(centred @ centred)) * likeness_factor(left)
    half = t95(len(x) - 2) * error
    return Estimate(value=value, low=value - half, high=value + half)


def change_of(x: Numbers, y: Numbers, *, noise: float, freedom: int) -> Estimate:
    """What a straight line through all points rises from the first to the last.

    `noise` is that of a point, known with so many degrees of freedom; points that scatter more count for themselves.
    """
    centred = x - x.mean()
    weight = float(centred @ centred)
    slope = float(centred @ y) / weight
    left = y - y.mean() - slope * centred
    seen = sqrt(float(left @ left) / (len(x) - 2)) if len(x) > 3 else 0.0
    half = t95(freedom) * max(noise, seen) / sqrt(weight) * float(np.ptp(x))
    value = slope * float(np.ptp(x))
    return Estimate(value=value, low=value - half, high=value + half)


def noise_of(y: Numbers) -> float:
    """Standard deviation of the noise on a smooth curve, from second differences; 0 with fewer than four points."""
    if len(y) < 4:
        return 0.0
    sizes = np.abs(np.diff(y, 2)) / sqrt(6)
    if len(y) >= FEWEST_FOR_LIKENESS:
        return float(SCALE * np.median(sizes))
    # In a short curve most second differences are bends, so that only the smaller ones may be noise, and no more of
    # them than a curve that falls and then rises leaves.
    return min(float(QUARTER_SCALE * np.quantile(sizes, 0.25)), _left_by_bends(y))


def _left_by_bends(y: Numbers) -> float:
    """Standard deviation around the closest power law that turns into a straight line; inf with too few points."""
    freedom = len(y) - BEND_NUMBERS
    if freedom < 2:
        return inf
    place = np.arange(1, len(y) + 1) / len(y)
    turns = [*place[1:-2], 1.0]
    curves = np.stack(
        [
            np.stack([np.ones_like(place), place**-power, np.maximum(0.0, place - turn)], axis=1)
            for power in (0.3, 1.0, 2.0)
            for turn in turns
        ]
    )
    fits = curves @ (np.linalg.pinv(curves) @ y)[:, :, None]
    return sqrt(float(((y - fits[:, :, 0]) ** 2).sum(axis=1).min()) / freedom)


def measure_rise(y: Numbers, *, floor: float) -> Rise:
    """How far the end lies above the lowest point, and whether noise of at least `floor` could do that.

    The lowest of many noisy points lies low by chance. So the same is measured on curves that never rise, made of
    the falling fit to `y` and noise, and `chance` is the share of them that rise as much.
    """
    width = max(1, min(8, len(y) // 8))
    found, lowest = _rises(y[None, :], width)
    sigma, alike = _noise_and_likeness(y)
    sigma = max(floor, noise_of(y), sigma, LEAST_NOISE)
    by_chance, _ = _rises(_falling(y) + sigma * _alike_noise(len(y), alike), width)
    # Few points do not know their noise, unless it is that of the set's size.
    known = Z95 if sigma <= floor or len(y) >= FEWEST_FOR_LIKENESS else t95(len(y) - 3)
    half = known * sigma * sqrt(2 / width)
    value = float(found[0])
    return Rise(
        value=value,
        low=value - half,
        high=value + half,
        chance=(1 + float(np.sum(by_chance >= value))) / (TRIALS + 1),
        lowest=int(lowest[0]),
    )


def _rises(curves: Numbers, width: int) -> tuple[Numbers, NDArray[np.int64]]:
    """For each row, the mean of its end above its lowest running mean, and where that is."""
    sums = np.cumsum(np.pad(curves, ((0, 0), (1, 0))), axis=1)
    means = (sums[:, width:] - sums[:, :-width]) / width
    lowest = means.argmin(axis=1)
    return means[:, -1] - means.min(axis=1), lowest + width // 2


def _noise_and_likeness(y: Numbers) -> tuple[float, float]:
    """Standard deviation around a smooth curve, and how alike neighbours are; noughts where points are too few."""
    if len(y) < FEWEST_FOR_LIKENESS:
        return 0.0, 0.0
    place = np.arange(1, len(y) + 1) / len(y)
    smooth = np.stack([np.ones_like(place), place**-0.5, 1 / place, place, place**2], axis=1)
    found, *_ = np.linalg.lstsq(smooth, y, rcond=None)
    left = (y - smooth @ found)[len(y) // 3 :]
    sigma = sqrt(float(left @ left) / (len(left) - 3))
    # A fit takes part of the likeness away.
    return sigma, min(0.9, _likeness(left) + 4.0 / len(left)) if _likeness(left) > 0 else 0.0


def _alike_noise(length: int, alike: float) -> Numbers:
    """Rows of standard noise whose neighbours are correlated by so much."""
    noise = np.random.default_rng(SEED).normal(0.0, 1.0, (TRIALS, length))
    for place in range(1, length if alike else 0):
        noise[:, place] = alike * noise[:, place - 1] + sqrt(1 - alike**2) * noise[:, place]
    return noise


def _falling(y: Numbers) -> Numbers:
    """The closest curve that never rises."""
    levels: list[float] = []
    sizes: list[int] = []
    for value in y.tolist():
        levels.append(value)
        sizes.append(1)
        while len(levels) > 1 and levels[-2] < levels[-1]:
            size = sizes[-2] + sizes[-1]
            levels[-2] = (levels[-2] * sizes[-2] + levels[-1] * sizes[-1]) / size
            sizes[-2] = size
            levels.pop()
            sizes.pop()
    return np.repeat(levels, sizes)


def _likeness(left: Numbers) -> float:
    """Correlation of neighbours, at least 0."""
    centred = left - left.mean()
    whole = float(centred @ centred)
    return max(0.0, float(centred[1:] @ centred[:-1]) / whole) if whole > 0 else 0.0


def likeness_factor(left: Numbers) -> float:
    """By how much intervals widen because neighbours are alike; 1 where there are too few to tell."""
    alike = min(0.95, _likeness(left)) if len(left) >= 8 else 0.0
    return sqrt((1 + alike) / (1 - alike))


def t95(freedom: int) -> float:
    """Student's t, two-sided 95 %."""
    if freedom <= len(SMALL_SAMPLE_T95):
        return SMALL_SAMPLE_T95[max(freedom, 1) - 1]
    return Z95 + (Z95**3 + Z95) / (4 * freedom) + (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / (96 * freedom**2)
