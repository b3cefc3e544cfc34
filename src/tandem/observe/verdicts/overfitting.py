"""Is it overfitting? The loss on the valid text against its lowest point, and against training pairs measured alike."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from tandem.observe.confidence import Grounds, Scale, confidence_of
from tandem.observe.curve_fits import Turned, chance_of_decay, rise_by_turns
from tandem.observe.finding import Evidence, Finding, Question, as_verdict
from tandem.observe.learning import (
    Curve,
    bleu_curve,
    chance_above,
    divergence,
    gap_curve,
    least_noise,
    recent_part,
    rise_of,
    training_change,
    valid_curve,
    without_jumps,
)
from tandem.observe.numbers import count, decimal, percent
from tandem.observe.outlook import LITTLE, Outlook, read_outlook
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Estimate, Rise, change_of, noise_of, slope_of, t95
from tandem.observe.verdicts.draft import Draft, finish_draft
from tandem.observe.verdicts.few_evaluations import draft_unsettled
from tandem.observe.verdicts.words import evaluate_more

__all__ = ["QUESTION", "judge"]

FEWEST = 3
"""Evaluations from which a lowest point can lie behind."""
CHANCE = 0.01
"""A rise counts if noise alone would make it this seldom."""
CLEAR = 0.95
"""Or if curves that turn are so much likelier than others."""
DOUBT = 0.05
"""And below this it is in doubt."""
COMMON = 0.3
"""Share of the rise from which on one of training pairs explains it."""
SLIGHT, MATERIAL = 0.003, 0.01
"""Shares of the lowest loss from which a rise is one, and from which it matters."""
ALONE = 0.2
"""Chance that a single evaluation lies off by something other than noise."""
OUTSIDE = 3.0
"""Standard deviations by which noise hardly ever bends a curve."""
HIDDEN = 0.2
"""Chance of a rise that matters, if the curve has turned where that shows least, up to which no rise is hidden."""
BETTER = 0.3
"""BLEU since the lowest loss: from here on translations got better, whatever the loss says."""

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
BLEU_THEN = "BLEU when the loss was lowest, and now"
LATE = "a rise that began with the last evaluations: they are too few or too noisy"
AFTER_DECAY = "the loss on the valid text after the learning rate has fallen"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    valid: Curve
    rise: Rise
    turned: Turned
    """What the rise may truly be, by curves that fall and may turn."""
    gap: Curve
    bleu: Estimate | None
    """By how much BLEU changed since that point; None where it was not measured then and now."""
    training: Estimate
    """By how much training pairs, or the training loss where no pairs were measured, changed since that point."""
    outlook: Outlook

    @property
    def lowest(self) -> float:
        return float(self.valid.value[self.rise.lowest])

    @property
    def has_risen(self) -> bool:
        return self.rise.value > 0 and (self.rise.chance <= CHANCE or self.by_turns >= CLEAR)

    @property
    def by_turns(self) -> float:
        """Chance of a rise, by the curves that fall and may turn."""
        return float(np.mean(self.turned.spread > SLIGHT * self.lowest))

    @property
    def reality(self) -> float:
        """Chance that the rise is no noise, by the test that sees it best."""
        return max(self.rise.reality if self.rise.chance <= CHANCE else 0.0, self.by_turns)

    @property
    def estimate(self) -> Estimate:
        """The rise by its last evaluations, or by the curves where only these tell it from noise."""
        if self.rise.chance <= CHANCE:
            return Estimate(value=self.rise.value, low=self.rise.low, high=self.rise.high)
        low, middle, high = (float(each) for each in np.quantile(self.turned.spread, (0.025, 0.5, 0.975)))
        return Estimate(value=middle, low=low, high=high)

    @property
    def by_last(self) -> float:
        """Chance of no rise that matters by the last evaluation alone; 1 where it goes on as the others did."""
        recent = recent_part(self.valid).value
        noise = max(noise_of(recent), least_noise(self.valid))
        risen = float(self.valid.value[-1] - self.valid.value[:-1].min())
        if risen <= 0 or np.diff(self.valid.value[-3:], 2)[0] <= OUTSIDE * sqrt(6) * noise:
            return 1.0
        half = 1.96 * sqrt(2) * noise
        estimate = Estimate(value=risen, low=risen - half, high=risen + half)
        return max(ALONE, 1 - chance_above(estimate, MATERIAL * self.lowest))

    @property
    def is_material(self) -> bool:
        return self.rise.value >= MATERIAL * self.lowest

    @property
    def place(self) -> str:
        return count(int(self.valid.step[self.rise.lowest]))

    @property
    def by_rate(self) -> float:
        """Chance that a learning rate above that of the lowest point did it, not what was learnt by heart."""
        shares = self.outlook.shares(self.valid.step)
        risen = float(shares[-1] - shares[self.rise.lowest]) if shares is not None else 0.0
        return chance_of_decay(risen, self.rise.value / self.lowest) if not len(self.gap) else 0.0

    @property
    def has_stayed(self) -> float:
        """Chance that a rise is not that of single evaluations: the last ones all lie above half of it."""
        later = self.valid.value[self.rise.lowest + 1 :] - self.lowest > self.rise.value / 2
        below = np.flatnonzero(~later)
        alike = len(later) - (int(below[-1]) + 1 if len(below) else 0)
        return float(1 - ALONE ** max(1, alike))


def judge(series: Series) -> Finding:
    """Answer from the evaluations; a run that came apart is not overfitting."""
    valid = valid_curve(series)
    seen = _look(series, valid) if len(valid) >= FEWEST else None
    unsettled = None if divergence(series) else draft_unsettled(valid, without_jumps(valid))
    draft = unsettled or _answer(series, seen, len(valid))
    missing = [] if len(gap_curve(series)) else [PROBE]
    if seen is not None and seen.has_risen and seen.bleu is None:
        missing.append(BLEU_THEN)
    if len(valid) < FEWEST:
        missing.insert(0, f"the loss on the valid text after at least {FEWEST} steps")
    evidence = _evidence(seen) if seen is not None else ()
    return finish_draft(QUESTION, replace(draft, missing=tuple(missing)), evidence=evidence)


def _look(series: Series, valid: Curve) -> _Seen:
    rise, outlook = rise_of(valid), read_outlook(series)
    return _Seen(
        valid=valid,
        rise=rise,
        turned=_turns(valid, rise, outlook),
        gap=gap_curve(series),
        bleu=_change_since(bleu_curve(series), valid.step[rise.lowest]),
        training=training_change(series, valid.step[rise.lowest]),
        outlook=outlook,
    )


def _turns(valid: Curve, rise: Rise, outlook: Outlook) -> Turned:
    """By all evaluations since the first, steep ones."""
    begin = min(len(valid) - len(recent_part(valid)), max(0, rise.lowest - 3))
    step, value = valid.step[begin:], valid.value[begin:]
    return rise_by_turns(step, value, floor=least_noise(valid), by_rates=outlook.clock(step, ()))


def _change_since(curve: Curve, step: float) -> Estimate | None:
    later = curve.step >= step
    if later.sum() < 2:
        return None
    noise = max(curve.floor, noise_of(curve.value))
    freedom = max(1, len(curve) - 3)
    line = change_of(curve.step[later], curve.value[later], noise=noise, freedom=freedom)
    # A line says little of a curve that bends, and the ends alone little of one that is noisy: both have to agree.
    width = max(1, int(later.sum()) // 6)
    ends = float(curve.value[later][-width:].mean() - curve.value[later][:width].mean())
    half = t95(freedom) * noise * sqrt(2 / width)
    return Estimate(
        value=(line.value + ends) / 2, low=min(line.low, ends - half), high=max(line.high, ends + half)
    )


def _answer(series: Series, seen: _Seen | None, evaluations: int) -> Draft:
    if how := divergence(series):
        return Draft(
            verdict="no",
            grounds=Grounds(lacks=() if len(gap_curve(series)) else (PROBE,)),
            answer=f"No: the run came apart, which is something else: {how}.",
            advice="See whether it is fully trained, for what to do.",
        )
    if seen is None:
        are = "is one evaluation" if evaluations == 1 else f"are {evaluations or 'no'} evaluations"
        return Draft(
            answer=f"Cannot tell: there {are} of the loss on the valid text, and {FEWEST} are needed.",
            advice=evaluate_more(series),
        )
    if seen.has_risen:
        return _of_risen(seen)
    return _of_not_risen(seen)


def _of_risen(seen: _Seen) -> Draft:
    rise = f"{decimal(seen.rise.value)} ({percent(seen.rise.value / seen.lowest)})"
    told = f"the loss on the valid text is {rise} above its lowest point, {decimal(seen.lowest)} at step {seen.place}"
    lacks = () if len(seen.gap) else (PROBE,)
    real = seen.reality * seen.has_stayed
    common = chance_above(seen.training, COMMON * seen.rise.value)
    if common > 1 / 2:
        return Draft(
            verdict="no",
            grounds=Grounds(chance=common, lacks=lacks),
            answer=f"No: {told}, but that on training pairs rose as well, so it is not learning them by heart.",
            advice="Look at the learning rate and the gradient norm: something else goes wrong.",
        )
    borders = (SLIGHT * seen.lowest, MATERIAL * seen.lowest)
    answer, chance = Scale(borders=borders, answers=("no", "partly", "yes")).weigh(seen.estimate)
    if answer == "no":
        return Draft(
            verdict="no",
            grounds=Grounds(chance=chance, lacks=lacks),
            answer=f"No: {told}, which is next to nothing.",
        )
    real *= 1 - max(seen.by_rate, common if len(seen.gap) else 0.0)
    better = 0.0
    if seen.bleu is not None:
        better = chance_above(seen.bleu, BETTER)
        if better > 1 / 2:
            return _of_better(seen, told, chance=real * better, lacks=lacks)
    else:
        lacks = (*lacks, BLEU_THEN)
    if seen.outlook.ahead >= LITTLE:
        lacks = (*lacks, AFTER_DECAY)
    grounds = Grounds(chance=real * chance * (1 - better), lacks=lacks)
    if answer == "partly":
        return Draft(
            verdict=as_verdict(answer),
            grounds=grounds,
            answer=f"Hardly: {told}: more than noise, but less than 1 %.",
            advice="Watch the next evaluations.",
        )
    still = " By its plan the learning rate will still fall, which may bring the loss down again."
    return Draft(
        verdict="yes",
        grounds=grounds,
        answer=f"Yes, since about step {seen.place}: {told}, while training pairs go on getting better."
        + (still if seen.outlook.ahead >= LITTLE else ""),
        advice="Use the best checkpoint; more data, more dropout or a smaller model would help.",
    )


def _of_better(seen: _Seen, told: str, *, chance: float, lacks: tuple[str, ...]) -> Draft:
    grounds = Grounds(chance=chance, lacks=lacks)
    bleu = decimal(seen.bleu.value) if seen.bleu is not None else ""
    is_sure = confidence_of(grounds) in {"high", "medium"}
    how = f"yet BLEU is {bleu} higher" if is_sure else "and BLEU seems to be higher"
    return Draft(
        verdict="partly",
        grounds=grounds,
        answer=f"Partly: {told}, {how} than then. A model can grow too sure of itself while its translations get "
        "better, as is common with label smoothing.",
        advice="Choose the checkpoint by BLEU, and stop when that falls too.",
    )


def _of_not_risen(seen: _Seen) -> Draft:
    if seen.rise.chance <= DOUBT and seen.is_material:
        return Draft(
            answer=f"Cannot tell: the loss on the valid text is {decimal(seen.rise.value)} above its lowest point, "
            f"but its noise alone does that in {percent(seen.rise.chance)} of runs.",
            advice="Evaluate on a larger valid set, or wait for more evaluations.",
        )
    text = f"No: the loss on the valid text is at its lowest point, {decimal(seen.lowest)}, or within its noise of it"
    if len(seen.gap):
        gap = float(seen.gap.value[-1])
        text += f"; it is {decimal(abs(gap))} {'above' if gap >= 0 else 'below'} that on training pairs measured alike"
        if slope_of(seen.gap.step, seen.gap.value).low > 0:
            text += ", and that gap grows: the model learns training pairs by heart too, without harm so far"
    if seen.by_last < 1 / 2:
        return Draft(
            answer="Cannot tell: the last evaluation has the loss on the valid text above its lowest point, by more "
            "than its noise, and one evaluation does not say whether it has turned.",
            advice="Wait for another evaluation.",
        )
    chance = min(seen.by_last, float(np.mean(seen.turned.spread < MATERIAL * seen.lowest)))
    lacks = () if len(seen.gap) else (PROBE,)
    if seen.turned.chance_hidden(MATERIAL * seen.lowest) > HIDDEN:
        lacks = (*lacks, LATE)
    grounds = Grounds(chance=chance, lacks=lacks)
    if confidence_of(grounds) in {"high", "medium"}:
        return Draft(verdict="no", grounds=grounds, answer=f"{text}.")
    return Draft(
        verdict="no",
        grounds=grounds,
        answer=f"{text}; but it could be {decimal(max(float(np.quantile(seen.turned.spread, 0.975)), 0.0))} above.",
        advice="Evaluate on a larger valid set.",
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
