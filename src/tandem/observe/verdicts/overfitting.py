"""Is it overfitting? The loss on the valid text against its lowest point, and against training pairs measured alike."""

from dataclasses import dataclass

from tandem.observe.finding import Confidence, Evidence, Finding, Question, Verdict
from tandem.observe.learning import (
    Curve,
    bleu_curve,
    divergence,
    gap_curve,
    rise_of,
    training_rise,
    valid_curve,
)
from tandem.observe.numbers import count, decimal, percent
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Estimate, Rise, change_of, noise_of, slope_of
from tandem.observe.verdicts.words import evaluate_more

__all__ = ["QUESTION", "judge"]

FEWEST = 3
"""Evaluations from which a lowest point can lie behind."""
CHANCE = 0.01
"""A rise counts if noise alone would make it this seldom."""
CLEAR_CHANCE = 0.001
DOUBT = 0.05
"""And below this it is in doubt."""
COMMON = 0.3
"""Share of the rise from which on one of training pairs explains it."""
MATERIAL = 0.01
"""Share of the lowest loss from which a rise matters."""
CLOSE = 0.02
"""Share of the lowest loss: where the loss may be further above it, that it is not gets less trust."""
STEEP = 0.1
"""Share of the lowest loss: a rise by more is believed from a single evaluation."""
ENOUGH, MANY = 6, 12
"""Evaluations from which a clear rise is beyond doubt, and a small one is believed."""

BETTER, MUCH_BETTER = 0.3, 0.5
"""BLEU since the lowest loss: from here on translations got better, and a rise of the loss that may go with so much is
not trusted."""

QUESTION = Question(
    number=3,
    key="overfitting",
    question="Is it overfitting?",
    about="A model overfits when it learns its training pairs by heart: the loss on the valid text is at least 1 % "
    "above its lowest point, by more than its noise, while training pairs go on getting better.",
    would_change=(
        "Further evaluations: a loss on the valid text that stays more than 1 % above its lowest point, by more "
        "than its noise, while training pairs get better, says yes; a new lowest point says no."
    ),
    figure="losses",
)
PROBE = "the loss on training pairs, measured like the valid text (evaluate.probe_pairs)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    valid: Curve
    rise: Rise
    gap: Curve
    bleu: Estimate | None
    """By how much BLEU changed since that point; None where it was not measured then and now."""
    training_rises: bool
    """Whether training pairs, or the training loss where no pairs were measured, got worse too since that point."""

    @property
    def lowest(self) -> float:
        return float(self.valid.value[self.rise.lowest])

    @property
    def has_risen(self) -> bool:
        return self.rise.chance <= CHANCE and self.rise.value > 0

    @property
    def is_material(self) -> bool:
        return self.rise.value >= MATERIAL * self.lowest

    @property
    def place(self) -> str:
        return count(int(self.valid.step[self.rise.lowest]))


def judge(series: Series) -> Finding:
    """Answer from the evaluations; a run that came apart is not overfitting."""
    valid = valid_curve(series)
    seen = _look(series, valid) if len(valid) >= FEWEST else None
    verdict, confidence, answer, advice = _answer(series, seen, len(valid))
    missing = [] if len(gap_curve(series)) else [PROBE]
    if seen is not None and seen.has_risen and seen.bleu is None:
        missing.append("BLEU when the loss was lowest, and now")
    if len(valid) < FEWEST:
        missing.insert(0, f"the loss on the valid text after at least {FEWEST} steps")
    return QUESTION.answer(
        verdict,
        confidence,
        answer,
        evidence=_evidence(seen) if seen is not None else (),
        advice=advice,
        missing=tuple(missing),
    )


def _look(series: Series, valid: Curve) -> _Seen:
    rise = rise_of(valid)
    return _Seen(
        valid=valid,
        rise=rise,
        gap=gap_curve(series),
        bleu=_change_since(bleu_curve(series), valid.step[rise.lowest]),
        training_rises=training_rise(series, valid.step[rise.lowest]) > COMMON * rise.value,
    )


def _change_since(curve: Curve, step: float) -> Estimate | None:
    later = curve.step >= step
    if later.sum() < 2:
        return None
    noise = max(curve.floor, noise_of(curve.value))
    return change_of(curve.step[later], curve.value[later], noise=noise, freedom=max(1, len(curve) - 3))


def _answer(series: Series, seen: _Seen | None, evaluations: int) -> tuple[Verdict, Confidence, str, str]:
    if how := divergence(series):
        text = f"No: the run came apart, which is something else: {how}."
        return "no", "medium", text, "See whether it is fully trained, for what to do."
    if seen is None:
        are = "is one evaluation" if evaluations == 1 else f"are {evaluations or 'no'} evaluations"
        text = f"Cannot tell: there {are} of the loss on the valid text, and {FEWEST} are needed."
        return "cannot tell", "none", text, evaluate_more(series)
    if seen.has_risen:
        return _of_risen(seen)
    return _of_not_risen(seen)


def _of_risen(seen: _Seen) -> tuple[Verdict, Confidence, str, str]:
    rise = f"{decimal(seen.rise.value)} ({percent(seen.rise.value / seen.lowest)})"
    told = f"the loss on the valid text is {rise} above its lowest point, {decimal(seen.lowest)} at step {seen.place}"
    if seen.training_rises:
        text = f"No: {told}, but that on training pairs rose as well, so it is not learning them by heart."
        advice = "Look at the learning rate and the gradient norm: something else goes wrong."
        return "no", "medium" if len(seen.gap) else "low", text, advice
    if seen.bleu is not None and seen.bleu.value > BETTER:
        is_sure = seen.bleu.low > 0
        how = f"yet BLEU is {decimal(seen.bleu.value)} higher" if is_sure else "and BLEU seems to be higher"
        text = (
            f"Partly: {told}, {how} than then. A model can grow too sure of itself while its translations get "
            "better, as is common with label smoothing."
        )
        trust: Confidence = "medium" if is_sure else "low"
        return "partly", trust, text, "Choose the checkpoint by BLEU, and stop when that falls too."
    if not seen.is_material:
        text = f"Hardly: {told}: more than noise, but less than 1 %."
        return "partly", "low", text, "Watch the next evaluations."
    text = f"Yes, since about step {seen.place}: {told}, while training pairs go on getting better."
    return (
        "yes",
        _trust_in_rise(seen),
        text,
        "Use the best checkpoint; more data, more dropout or a smaller model would help.",
    )


def _trust_in_rise(seen: _Seen) -> Confidence:
    if seen.bleu is not None and seen.bleu.high > MUCH_BETTER:
        return "low"
    later = seen.valid.value[seen.rise.lowest + 1 :]
    last = later[-max(2, len(seen.valid) // 8) :]
    has_stayed = len(later) >= 2 and bool((last - seen.lowest > seen.rise.value / 2).all())
    if len(seen.valid) <= FEWEST or not (has_stayed or seen.rise.value > STEEP * seen.lowest):
        return "low"
    if len(seen.valid) < MANY and seen.rise.value < STEEP / 2 * seen.lowest:
        return "low"
    is_clear = seen.rise.chance <= CLEAR_CHANCE and seen.rise.low > 0 and len(seen.valid) >= ENOUGH
    return "high" if is_clear and len(seen.gap) and seen.bleu is not None else "medium"


def _of_not_risen(seen: _Seen) -> tuple[Verdict, Confidence, str, str]:
    slack = max(seen.rise.high, 0.0)
    if seen.rise.chance <= DOUBT and seen.is_material:
        text = (
            f"Cannot tell: the loss on the valid text is {decimal(seen.rise.value)} above its lowest point, but its "
            f"noise alone does that in {percent(seen.rise.chance)} of runs."
        )
        return "cannot tell", "none", text, "Evaluate on a larger valid set, or wait for more evaluations."
    text = f"No: the loss on the valid text is at its lowest point, {decimal(seen.lowest)}, or within its noise of it"
    if len(seen.gap):
        gap = float(seen.gap.value[-1])
        text += f"; it is {decimal(abs(gap))} {'above' if gap >= 0 else 'below'} that on training pairs measured alike"
        if slope_of(seen.gap.step, seen.gap.value).low > 0:
            text += ", and that gap grows: the model learns training pairs by heart too, without harm so far"
    if len(seen.valid) <= FEWEST:
        return "no", "low", f"{text}.", ""
    is_above = seen.valid.value[-1] - seen.lowest > MATERIAL * seen.lowest
    if is_above or (slack > CLOSE * seen.lowest and not _is_falling(seen)):
        return (
            "no",
            "low",
            f"{text}; but it could be {decimal(slack)} above.",
            "Evaluate on a larger valid set.",
        )
    return "no", "high" if len(seen.gap) else "medium", f"{text}.", ""


def _is_falling(seen: _Seen) -> bool:
    """Whether the last evaluations fall one by one: three by more than noise, or four by anything."""
    falls = seen.valid.value[:-1] > seen.valid.value[1:]
    noise = seen.rise.high - seen.rise.value
    return bool(
        falls[-3:].all() or (falls[-2:].all() and seen.valid.value[-3] - seen.valid.value[-1] > noise)
    )


def _evidence(seen: _Seen) -> tuple[Evidence, ...]:
    found = [
        Evidence(
            name="rise of the loss on the valid text",
            value=seen.rise.value,
            low=seen.rise.low,
            high=seen.rise.high,
            definition="Mean of the last evaluations less the lowest running mean of as many.",
            figure="losses",
        ),
        Evidence(
            name="chance that noise alone looks like this rise",
            value=seen.rise.chance,
            unit="share",
            definition="Share of simulated runs whose loss never truly rises, with noise as found around the curve and "
            "at least that of the set's size, that rise as much. Below 0.01 the rise is taken for real.",
        ),
        Evidence(
            name="step of the lowest loss on the valid text",
            value=float(seen.valid.step[seen.rise.lowest]),
            definition="Of the lowest running mean of the loss.",
            figure="losses",
        ),
    ]
    if seen.bleu is not None:
        found.append(
            Evidence(
                name="change of BLEU since then",
                value=seen.bleu.value,
                low=seen.bleu.low,
                high=seen.bleu.high,
                definition="On a straight line through its points since the lowest loss, from the first to the last; "
                "the interval is by their noise, at least that of the set's size.",
                figure="bleu",
            )
        )
    if len(seen.gap):
        found += _of_gap(seen.gap)
    return tuple(found)


def _of_gap(gap: Curve) -> list[Evidence]:
    slope: Estimate = slope_of(gap.step, gap.value)
    alike = "Loss on the valid text less that on training pairs, both without dropout and smoothing"
    return [
        Evidence(name="gap", value=float(gap.value[-1]), definition=f"{alike}, now.", figure="losses"),
        Evidence(
            name="growth of the gap",
            value=1000 * slope.value,
            unit="per 1,000 steps",
            low=1000 * slope.low,
            high=1000 * slope.high,
            definition=f"{alike}: least-squares slope over all evaluations.",
            figure="losses",
        ),
    ]
