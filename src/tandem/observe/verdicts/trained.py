"""Is it fully trained? Whether more steps would still be worth something, by the curves and their noise."""

from dataclasses import dataclass

from tandem.observe.finding import Confidence, Evidence, Finding, Question, Verdict
from tandem.observe.learning import (
    FEWEST_SENTENCES,
    Curve,
    bleu_curve,
    divergence,
    is_stuck,
    recent_part,
    rise_of,
    train_curve,
    training_rise,
    valid_curve,
    without_jumps,
)
from tandem.observe.numbers import count, decimal
from tandem.observe.rates import read_plan
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Gain, expect_gains
from tandem.observe.verdicts.gains import FEWEST, MORE, bleu_gains, gain_evidence, loss_gains, relative_gain
from tandem.observe.verdicts.imported_scores import doubt_scores, score_evidence
from tandem.observe.verdicts.words import evaluate_more

__all__ = ["QUESTION", "judge"]

WORTH_SHARE = 0.01
WORTH_NATS = 0.005
"""A gain counts from one percent of the loss on, and from this much where the loss is small."""
WORTH_BLEU = 0.2
SURE, LIKELY, RATHER = 0.95, 0.9, 0.75
"""Chances at which an answer is given with high, medium and low confidence."""
RISEN = 0.01
"""Share of the lowest loss above which it counts as passed."""
CHANCE = 0.01

DEFINITION = (
    "Fully trained means: half as many steps again would lower the loss on the valid text by less than 1 % "
    "(or 0.005, if that is more) and raise BLEU by less than 0.2. Being stopped by a rule means nothing."
)
QUESTION = Question(
    number=2,
    key="trained",
    question="Is it fully trained?",
    about=DEFINITION,
    would_change=(
        "Further evaluations: a loss on the valid text that goes on falling by more than its noise says no, "
        "one that stays within it says yes."
    ),
    figure="losses",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """An answer, before the evidence is put to it."""

    verdict: Verdict
    confidence: Confidence
    answer: str
    advice: str = ""
    missing: tuple[str, ...] = ()


def judge(series: Series) -> Finding:
    """Answer from the loss and BLEU on the valid text, or from the training loss where they are too few."""
    seen, bleu = valid_curve(series), bleu_curve(series)
    valid = without_jumps(seen)
    gain = loss_gains(valid)[0] if len(valid) >= FEWEST else None
    bleu_gain = bleu_gains(bleu)[0] if len(bleu) >= FEWEST else None
    said = (
        _came_apart(series)
        or _warming_up(series)
        or _unsettled(seen, valid)
        or _passed(series, valid, bleu_gain)
        or (_by_gain(series, gain, bleu_gain) if gain else _by_training_loss(series))
    )
    return QUESTION.answer(
        said.verdict,
        said.confidence,
        f"{said.answer}{doubt_scores(series)}",
        evidence=(*_evidence(series, valid, bleu), *score_evidence(series)),
        advice=said.advice,
        missing=said.missing,
    )


def _came_apart(series: Series) -> _Said | None:
    how = divergence(series)
    if not how:
        return None
    return _Said(
        verdict="no",
        confidence="high",
        answer=f"No: training came apart: {how}.",
        advice="Start again from a checkpoint before that, with a lower learning rate or a longer warm-up.",
    )


def _warming_up(series: Series) -> _Said | None:
    plan = read_plan(series)
    steps = series.steps.step
    if plan is None or len(steps) == 0 or plan.kind == "constant" or int(steps[-1]) >= plan.peak_step:
        return None
    return _Said(
        verdict="no",
        confidence="high",
        answer=(
            f"No: after {count(int(steps[-1]))} steps the learning rate is still in its warm-up, "
            f"which ends at step {count(plan.peak_step)}."
        ),
        advice="Let it go on at least until the rate has been falling for a while.",
    )


def _unsettled(seen: Curve, kept: Curve) -> _Said | None:
    """The loss jumped up lately: where it settles is not seen yet."""
    jumped = sorted(set(seen.step.tolist()) - set(kept.step.tolist()))
    if not jumped or int((kept.step > jumped[-1]).sum()) >= FEWEST:
        return None
    at = count(int(jumped[-1]))
    return _Said(
        verdict="cannot tell",
        confidence="none",
        answer=f"Cannot tell: the loss on the valid text jumped up around step {at} and may not have settled.",
        advice="Let it run for a few more evaluations.",
        missing=(f"{FEWEST} evaluations after the jump",),
    )


def _passed(series: Series, valid: Curve, bleu: Gain | None) -> _Said | None:
    """The loss has its lowest point behind it."""
    if len(valid) < FEWEST:
        return None
    rise = rise_of(valid)
    lowest = float(valid.value[rise.lowest])
    if rise.chance > CHANCE or rise.value < RISEN * lowest:
        return None
    place = count(int(valid.step[rise.lowest]))
    loss = f"the loss on the valid text was lowest around step {place} ({decimal(lowest)})"
    if training_rise(series, valid.step[rise.lowest]) > rise.value / 2:
        return _Said(
            verdict="no",
            confidence="medium",
            answer=f"No: {loss} and rose by {decimal(rise.value)} since, on training pairs too: it was thrown off.",
            advice="Go back to a checkpoint from before, and lower the learning rate.",
        )
    if bleu is not None and bleu.chance_above(WORTH_BLEU) > SURE:
        return _Said(
            verdict="partly",
            confidence="medium",
            answer=f"By its loss yes, by BLEU not yet: {loss} and has risen by {decimal(rise.value)}, "
            "while BLEU is still rising.",
            advice="Judge by BLEU: go on, and keep the checkpoint with the best BLEU.",
        )
    is_clear = rise.chance < CHANCE / 10 and rise.low > RISEN * lowest
    return _Said(
        verdict="yes",
        confidence="high" if is_clear else "medium",
        answer=f"Yes, since about step {place}: {loss}, and later steps made it worse by {decimal(rise.value)}.",
        advice="Use the best checkpoint, not the last; more steps of this kind will not help.",
    )


def _by_gain(series: Series, loss: Gain, bleu: Gain | None) -> _Said:
    worth = max(WORTH_NATS, WORTH_SHARE * loss.level)
    chance = loss.chance_above(worth)
    bleu_chance = bleu.chance_above(WORTH_BLEU) if bleu is not None else 0.0
    expected = (
        f"half as many steps again would lower the loss on the valid text by about {relative_gain(loss)}"
        + (_raised(bleu) if bleu is not None else "")
    )
    missing = () if bleu is not None else (_no_bleu(series),)
    if chance >= RATHER:
        return _Said(
            verdict="no",
            confidence="high" if chance >= SURE else "medium" if chance >= LIKELY else "low",
            answer=f"No: {expected}.{_stopped(series)}",
            advice=_go_on(series),
            missing=missing,
        )
    if is_stuck(series):
        return _stuck(loss.level, "medium", missing)
    if bleu is not None and bleu_chance >= 0.5 and chance <= 1 - LIKELY:
        return _Said(
            verdict="partly",
            confidence="medium" if bleu_chance >= SURE and chance <= 1 - SURE else "low",
            answer=f"By its loss yes, by BLEU not yet: {expected}.",
            advice=_go_on(series),
        )
    if chance <= 1 - LIKELY:
        doubt = max(chance, bleu_chance)
        return _Said(
            verdict="yes",
            confidence="low" if doubt > 1 - SURE else "medium" if bleu is None else "high",
            answer=f"Yes: {expected}, which is less than what counts (1 % of the loss, 0.2 BLEU).",
            missing=missing,
        )
    return _undecided(loss, worth, expected, missing)


def _raised(bleu: Gain) -> str:
    """What is said of BLEU; nothing where it would be noughts."""
    numbers = [f"{each:.2f}" for each in (bleu.estimate.value, bleu.estimate.low, bleu.estimate.high)]
    if all(float(each) == 0 for each in numbers):
        return ""
    value, low, high = numbers
    return f" and raise BLEU by about {value} (between {low} and {high})"


def _stuck(level: float, confidence: Confidence, missing: tuple[str, ...]) -> _Said:
    return _Said(
        verdict="no",
        confidence=confidence,
        answer=(
            f"No: it is stuck: the loss has settled at {decimal(level)}, which a model reaches that knows "
            "little more than which pieces are frequent."
        ),
        advice="Look at the data and the learning rate (too high is the usual cause), and start again.",
        missing=missing,
    )


def _no_bleu(series: Series) -> str:
    if any(each.scores for each in series.evaluations):
        return "BLEU of translations: what the other tool calls a score is none"
    if any(0 < each.sentences < FEWEST_SENTENCES for each in series.evaluations):
        return f"BLEU of at least {FEWEST_SENTENCES} sentences"
    return f"BLEU over at least {FEWEST} evaluations"


def _undecided(loss: Gain, worth: float, expected: str, missing: tuple[str, ...]) -> _Said:
    advice = "Let it run for a few more evaluations."
    if loss.estimate.high < 3 * worth and loss.estimate.low > -2 * worth:
        return _Said(
            verdict="partly",
            confidence="low",
            answer=f"Nearly: {expected}, which is close to what counts as worth while (1 %).",
            advice=advice,
            missing=missing,
        )
    return _Said(
        verdict="cannot tell",
        confidence="none",
        answer=f"Cannot tell: {expected}, but the evaluations are too few or too noisy to say which side of 1 %.",
        advice=advice,
        missing=("more evaluations, or a larger valid set", *missing),
    )


def _by_training_loss(series: Series) -> _Said:
    """Too few evaluations: a training loss that clearly falls still says no, and nothing says yes."""
    missing = (f"the loss on the valid text after at least {FEWEST} steps",)
    train = train_curve(series)
    recent, valid = recent_part(train), valid_curve(series).value
    if len(recent) >= 2 * FEWEST and (len(valid) == 0 or valid[-1] <= valid.min()):
        ends = (MORE * recent.step[-1],)
        (gain,) = expect_gains(recent.step, recent.value, ends=ends, floor=1e-9, least=0.0)
        if gain.chance_above(2 * WORTH_SHARE * gain.level) >= SURE:
            return _Said(
                verdict="no",
                confidence="low",
                answer=(
                    f"No: the training loss is still falling, by about {relative_gain(gain)} over half as many steps "
                    "again; there are too few evaluations to say more."
                ),
                advice=_go_on(series),
                missing=missing,
            )
    if len(recent) >= 2 * FEWEST and is_stuck(series):
        return _stuck(float(recent.value[-1]), "low", missing)
    return _Said(
        verdict="cannot tell",
        confidence="none",
        answer=(
            f"Cannot tell: there {_are(len(valid))} on the valid text, and the training loss alone "
            "does not say."
        ),
        advice=evaluate_more(series),
        missing=missing,
    )


def _are(evaluations: int) -> str:
    return "is one evaluation" if evaluations == 1 else f"are {evaluations or 'no'} evaluations"


def _stopped(series: Series) -> str:
    return f" That it ended ({series.ended}) says nothing about this." if series.ended else ""


def _go_on(series: Series) -> str:
    plan = read_plan(series)
    if plan is not None and plan.kind in {"cosine", "linear"}:
        return (
            "Train on with a plan for more steps (train.max_steps): this one ends at a learning rate of zero."
        )
    return "Go on training."


def _evidence(series: Series, valid: Curve, bleu: Curve) -> tuple[Evidence, ...]:
    return (
        Evidence(name="what fully trained means", value=DEFINITION, definition="As used for this answer."),
        Evidence(
            name="evaluations",
            value=float(len(valid)),
            definition="Evaluations after step 0 with a finite loss on the valid text.",
            figure="losses",
        ),
        *gain_evidence(series, valid, bleu),
    )
