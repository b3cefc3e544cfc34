"""How a run learnt: its curves with their noise, and whether it came apart."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import inf, isfinite, isinf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tandem.observe.confidence import Scale
from tandem.observe.facts import fact_count
from tandem.observe.numbers import count, decimal
from tandem.observe.series.columns import Evaluation, Series
from tandem.observe.statistics import Estimate, Rise, block_means, measure_rise, noise_of

__all__ = [
    "FEWEST_SENTENCES",
    "FEW_BLEU",
    "Curve",
    "bleu_curve",
    "chance_above",
    "divergence",
    "gap_curve",
    "is_stuck",
    "least_noise",
    "probe_curve",
    "recent_part",
    "rise_of",
    "train_curve",
    "training_change",
    "upside_down",
    "valid_curve",
    "without_jumps",
]

Numbers = NDArray[np.float64]

FEWEST_SENTENCES = 30
"""From here on BLEU has an interval; 0 is not known."""
Z95 = 1.96
PAIRED = 0.3
"""Noise between two evaluations of the same set, as a share of the noise of one: most of it is common to both."""
NEAR = 0.5
"""Of the usual distance of two evaluations: nearer ones with the same value are one that was logged again."""
HIDDEN_NOISE = ((6, 0.01), (12, 0.005))
"""Evaluations below which they cannot show their noise, and the share of the loss that is taken for it."""
BLOCKS = 40
FEWEST_STEPS = 20
"""Steps from which a rise of the training loss can be judged."""
RISEN = 0.2
"""Share of what the training loss had fallen by: a run that rose again by more came apart."""
GUESSING = 0.5
"""Share of the logarithm of the vocabulary: a loss above it is that of a model that knows frequent pieces only."""
FEW_BLEU = 3.0
UNTRAINED = 10
"""Steps after which a model is still nearly as it began."""
LEAST_UNTRAINED = 5.0
"""A model that begins with a lower loss had learnt something before."""


RECENT = 0.25
"""Of the steps: where the part of a curve begins that says how it goes on."""
JUMPED, JUMPED_SHARE = 6.0, 0.05
"""Times its noise, and share of the lowest loss: what lies so far above an earlier and a later value is a jump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Values after steps, in order; all are finite, and no step is 0."""

    step: Numbers
    value: Numbers
    floor: float
    """Least noise of a value, from the size of the set."""

    def __len__(self) -> int:
        return len(self.step)


def valid_curve(series: Series) -> Curve:
    """The loss on the valid text."""
    return _curve([(each, each.valid_loss) for each in series.evaluations], "valid_tokens")


def probe_curve(series: Series) -> Curve:
    """The loss on training pairs, measured like the valid text."""
    return _curve([(each, each.probe_loss) for each in series.evaluations], "probe_tokens")


def gap_curve(series: Series) -> Curve:
    """By how much the loss on the valid text is above that on training pairs, measured alike."""
    return _curve([(each, each.valid_loss - each.probe_loss) for each in series.evaluations], "valid_tokens")


def bleu_curve(series: Series) -> Curve:
    """BLEU on the valid text; the noise is that between two evaluations of the same sentences.

    Of very few sentences it is left out: it has no interval, and nothing can be said of its noise.
    """
    kept = _once(
        [
            (each, each.bleu)
            for each in series.evaluations
            if isfinite(each.bleu) and each.step > 0 and not 0 < each.sentences < FEWEST_SENTENCES
        ]
    )
    widths = [each.bleu_high - each.bleu_low for each, _ in kept if isfinite(each.bleu_high - each.bleu_low)]
    one = float(np.median(widths)) / (2 * 1.96) if widths else 0.5
    return Curve(
        step=np.array([each.step for each, _ in kept], np.float64),
        value=np.array([value for _, value in kept], np.float64),
        floor=PAIRED * one,
    )


def train_curve(series: Series, *, blocks: int = BLOCKS) -> Curve:
    """The training loss as means over stretches of steps, smoothing and dropout included."""
    step, value = block_means(series.steps.step.astype(np.float64), series.steps.loss, blocks=blocks)
    kept = step > 0
    return Curve(step=step[kept], value=value[kept], floor=noise_of(value))


def recent_part(curve: Curve) -> Curve:
    """The part of a curve that says how it goes on; a short curve nearly all."""
    if len(curve) == 0:
        return curve
    late = int((curve.step < RECENT * curve.step[-1]).sum())
    begin = min(late, max(0, len(curve) - 5))
    return Curve(step=curve.step[begin:], value=curve.value[begin:], floor=curve.floor)


def upside_down(curve: Curve) -> Curve:
    """A score as if it were a loss."""
    return Curve(step=curve.step, value=-curve.value, floor=curve.floor)


def without_jumps(curve: Curve) -> Curve:
    """The curve without what lies far above both an earlier and a later value: the loss jumped there and came back."""
    if len(curve) < 4:
        return curve
    before = np.minimum.accumulate(curve.value)
    after = np.minimum.accumulate(curve.value[::-1])[::-1]
    far = max(JUMPED * max(curve.floor, noise_of(curve.value)), JUMPED_SHARE * float(before[-1]))
    kept = curve.value - np.maximum(before, after) <= far
    return Curve(step=curve.step[kept], value=curve.value[kept], floor=curve.floor)


def training_change(series: Series, step: float) -> Estimate:
    """By how much the loss on training pairs, or without them the training loss, changed since a step.

    Where neither was measured then and now, nothing is known of it.
    """
    probe = probe_curve(series)
    curve = probe if len(probe) else train_curve(series)
    later = curve.value[curve.step >= step]
    if len(later) < 2:
        return Estimate(value=0.0, low=-inf, high=inf)
    half = Z95 * sqrt(2) * max(curve.floor, noise_of(curve.value))
    change = float(later[-1] - later[0])
    return Estimate(value=change, low=change - half, high=change + half)


def chance_above(estimate: Estimate, border: float) -> float:
    """That a number is above a border, by its interval."""
    answer, chance = Scale(borders=(border,), answers=("below", "above")).weigh(estimate)
    return chance if answer == "above" else 1 - chance


def rise_of(curve: Curve) -> Rise:
    """How far a loss lies above its lowest point."""
    return measure_rise(curve.value, floor=least_noise(curve))


def least_noise(curve: Curve) -> float:
    """Of a loss: a short curve is taken to have some noise that it cannot show."""
    hidden = next((noise for fewer, noise in HIDDEN_NOISE if len(curve) < fewer), 0.0)
    return max(curve.floor, hidden * float(np.abs(curve.value).min()))


def divergence(series: Series) -> str:
    """How training came apart, as a half sentence; empty where it did not."""
    return _lost_numbers(series) or _lost_judgement(series) or _lost_ground(series)


def is_stuck(series: Series) -> bool:
    """Whether the model knows little more than which pieces are frequent."""
    valid, bleu, train = valid_curve(series), bleu_curve(series), train_curve(series)
    ends = [curve.value[-1] for curve in (valid, train) if len(curve)]
    if not ends or (len(bleu) and bleu.value[-1] >= FEW_BLEU):
        return False
    return float(ends[0]) > GUESSING * _surprise_of_guessing(series)


def _curve(points: list[tuple[Evaluation, float]], tokens: str) -> Curve:
    kept = _once([(each, value) for each, value in points if isfinite(value) and each.step > 0])
    values = np.array([value for _, value in kept], np.float64)
    sizes = [getattr(each, tokens) for each, _ in kept if getattr(each, tokens) > 0]
    # A token's loss is spread about as widely as it is high.
    level = float(np.median([each.valid_loss for each, _ in kept])) if kept else 0.0
    return Curve(
        step=np.array([each.step for each, _ in kept], np.float64),
        value=values,
        floor=PAIRED * level / sqrt(min(sizes)) if sizes and isfinite(level) else 0.002 * abs(level),
    )


def _once(points: list[tuple[Evaluation, float]]) -> list[tuple[Evaluation, float]]:
    """Leave out what only says again what was said: noise that was seen once must not look like none.

    Of one step the last counts; of the same value at two steps far nearer to each other than others are, too.
    """
    ordered = [
        (each, value)
        for _, (each, value) in sorted({each.step: (each, value) for each, value in points}.items())
    ]
    gaps = [after.step - before.step for (before, _), (after, _) in pairwise(ordered)]
    near = NEAR * float(np.median(gaps)) if gaps else 0.0
    return [
        point
        for point, following in zip_longest(ordered, ordered[1:])
        if following is None or following[1] != point[1] or following[0].step - point[0].step > near
    ]


def _lost_numbers(series: Series) -> str:
    steps = series.steps
    lost = ~np.isfinite(steps.loss) | steps.skipped
    if not lost.any() or lost.all() or not lost[-1]:
        return ""
    sound = np.flatnonzero(~lost)
    begun = int(sound[-1]) + 1
    tail = len(lost) - begun
    # Where most values are missing, they were not measured.
    if tail < max(3, len(lost) // 50) or np.mean(lost[:begun]) > 0.1:
        return ""
    return f"the training loss or its gradients are not finite from step {count(int(steps.step[begun]))} on"


def _lost_judgement(series: Series) -> str:
    judged = [each for each in series.evaluations if isfinite(each.duration_s)]
    if not judged or not any(isfinite(each.valid_loss) for each in judged):
        return ""
    last = judged[-1]
    if isfinite(last.valid_loss) or (series.imported is not None and not isinf(last.valid_loss)):
        return ""
    return f"the loss on the valid text is not finite at step {count(last.step)}"


def _lost_ground(series: Series) -> str:
    if len(series.steps) < FEWEST_STEPS:
        return ""
    curve = train_curve(series)
    if len(curve) < 8:
        return ""
    smooth = np.convolve(curve.value, [0.5, 0.5], "valid")
    low, end = float(smooth.min()), float(smooth[-1])
    rise = end - low
    if rise <= max(RISEN * (curve.value[0] - low), 0.1 * low, 5 * curve.floor):
        return ""
    place = int(curve.step[int(smooth.argmin())])
    return f"the training loss rose from {decimal(low)} around step {count(place)} to {decimal(end)}"


def _surprise_of_guessing(series: Series) -> float:
    subword = series.recipe.get("subword")
    told = [
        series.card.vocabulary.size if series.card is not None else None,
        fact_count(series, "vocabulary"),
        subword.get("vocabulary") if isinstance(subword, Mapping) else None,
    ]
    sizes = [size for size in told if isinstance(size, int) and size > 1]
    if sizes:
        return log(sizes[0])
    # An untrained model spreads its guesses over the whole vocabulary.
    untrained = series.steps.loss[series.steps.step <= UNTRAINED]
    return float(untrained[0]) if len(untrained) and untrained[0] > LEAST_UNTRAINED else inf
