"""Is it fully trained? Whether more steps would still be worth something, by the curves and their noise."""

from math import isnan

import numpy as np

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.curve_fits import Gain, chance_of_decay
from tandem.observe.finding import Evidence, Finding, Question, Verdict
from tandem.observe.learning import (
    FEWEST_SENTENCES,
    Curve,
    bleu_curve,
    chance_above,
    divergence,
    is_stuck,
    probe_curve,
    rise_of,
    training_change,
    valid_curve,
    without_jumps,
)
from tandem.observe.numbers import count, decimal
from tandem.observe.outlook import LITTLE, Outlook, read_outlook
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Estimate, Rise, measure_rise
from tandem.observe.verdicts.draft import Draft, finish_draft
from tandem.observe.verdicts.few_evaluations import (
    draft_stuck,
    draft_unsettled,
    ground_stuck,
    judge_training_loss,
)
from tandem.observe.verdicts.gains import (
    FEWEST,
    WORTH_BLEU,
    WORTH_SHARE,
    bleu_gains,
    gain_evidence,
    loss_gains,
    relative_gain,
    weigh_together,
    worth_of,
)
from tandem.observe.verdicts.imported_scores import doubt_scores, score_evidence
from tandem.observe.verdicts.still_to_come import (
    AFTER,
    AFTER_DECAY,
    MORE_EVALUATIONS,
    chance_of_better,
    go_on,
    ground_fall,
    ground_rest,
    lacks_for_sure,
    say_undecayed,
    try_decay,
    wait_for_decay,
)

__all__ = ["QUESTION", "judge"]

LIKELY, RATHER = 0.9, 0.75
"""Chances of nothing to gain, and of a gain, from which that is the answer."""
RISEN = 0.01
"""Share of the lowest loss above which it counts as passed."""
CHANCE = 0.01
NEAR = (0.6, 1.7)
"""Times what counts: a gain between them is close to the border."""

DEFINITION = (
    "Fully trained means: half as many steps again, and what the learning rate's plan still has ahead, would lower the "
    "loss on the valid text by less than 1 % (or 0.005, if that is more) and raise BLEU by less than 0.2. Being "
    "stopped by a rule means nothing."
)
QUESTION = Question(
    number=2,
    key="trained",
    question="Is it fully trained?",
    about=DEFINITION,
    would_change=(
        "Further evaluations: a loss on the valid text that goes on falling by more than its noise says no, "
        "one that stays within it, after the learning rate has fallen as planned, says yes."
    ),
    figure="losses",
)


PROBE = "the loss on training pairs, measured like the valid text (evaluate.probe_pairs)"


def judge(series: Series) -> Finding:
    """Answer from the loss and BLEU on the valid text, or from the training loss where they are too few."""
    outlook = read_outlook(series)
    seen, bleu = valid_curve(series), bleu_curve(series)
    valid = without_jumps(seen)
    gain = loss_gains(valid, outlook)[0] if len(valid) >= FEWEST else None
    bleu_gain = _gain_of_bleu(bleu, outlook)
    draft = (
        _came_apart(series)
        or _warming_up(outlook, gain)
        or draft_unsettled(seen, valid)
        or _passed(series, outlook, valid, gain, bleu_gain)
        or (
            _by_gain(series, outlook, gain, bleu_gain, valid)
            if gain
            else judge_training_loss(series, outlook)
        )
    )
    evidence = (*_evidence(series, outlook, valid, bleu), *score_evidence(series))
    return finish_draft(QUESTION, draft, evidence=evidence, beside=doubt_scores(series))


def _gain_of_bleu(bleu: Curve, outlook: Outlook) -> Gain | None:
    """What BLEU will gain; nothing where it has its highest point behind it."""
    if len(bleu) < FEWEST:
        return None
    gain = bleu_gains(bleu, outlook)[0]
    if measure_rise(-bleu.value, floor=bleu.floor).chance > CHANCE:
        return gain
    none = np.zeros_like(gain.spread)
    estimate = Estimate(value=0.0, low=0.0, high=0.0)
    return Gain(estimate=estimate, level=gain.level, spread=none, by_steps=none)


def _came_apart(series: Series) -> Draft | None:
    how = divergence(series)
    if not how:
        return None
    return Draft(
        verdict="no",
        grounds=Grounds(),
        answer=f"No: training came apart: {how}.",
        advice="Start again from a checkpoint before that, with a lower learning rate or a longer warm-up.",
    )


def _warming_up(outlook: Outlook, gain: Gain | None) -> Draft | None:
    if outlook.plan is None or not outlook.is_warming:
        return None
    # A curve that stands still under a rate that rises says nothing about the rate that is to come.
    is_flat = gain is not None and gain.chance_by_steps(worth_of(gain)) < RATHER
    return Draft(
        verdict="no",
        grounds=Grounds(kind=Kind.ASSUMED if is_flat else Kind.MEASURED),
        answer=(
            f"No: after {count(outlook.step)} steps the learning rate is still in its warm-up, "
            f"which ends at step {count(outlook.warmup)}."
        ),
        advice="Let it go on at least until the rate has been falling for a while.",
    )


def _passed(
    series: Series, outlook: Outlook, valid: Curve, gain: Gain | None, bleu: Gain | None
) -> Draft | None:
    """The loss has its lowest point behind it."""
    if gain is None:
        return None
    rise = rise_of(valid)
    lowest = float(valid.value[rise.lowest])
    if rise.chance > CHANCE or rise.value < RISEN * lowest:
        return None
    place = count(int(valid.step[rise.lowest]))
    loss = f"the loss on the valid text was lowest around step {place} ({decimal(lowest)})"
    # A fall of the learning rate may still bring the loss below that.
    more = gain.chance_above(rise.value + worth_of(gain))
    if not outlook.is_known:
        more = max(more, chance_of_decay(outlook.most_ahead, rise.value / lowest + WORTH_SHARE))
    if more > 1 / 2:
        return Draft(
            verdict="no",
            grounds=ground_fall(outlook, valid, chance=more),
            answer=f"No, not yet: {loss}, and is higher by {decimal(rise.value)} now, but a fall of the learning rate "
            f"usually lowers it by more.{outlook.sentence}",
            advice=wait_for_decay(outlook),
            would_change=AFTER,
        )
    real = rise.reality * (1 - more)
    thrown_off = chance_above(training_change(series, valid.step[rise.lowest]), rise.value / 2)
    if thrown_off > 1 / 2:
        return _thrown_off(
            outlook, valid, rise, loss, chance=real * thrown_off, probed=bool(len(probe_curve(series)))
        )
    lacks = (AFTER_DECAY,) if outlook.most_ahead >= LITTLE else ()
    bleu_chance = bleu.chance_by_steps(WORTH_BLEU) if bleu is not None else 0.0
    if bleu_chance > 1 / 2:
        return Draft(
            verdict="partly",
            grounds=Grounds(chance=real * bleu_chance, lacks=lacks),
            answer=f"By its loss yes, by BLEU not yet: {loss} and has risen by {decimal(rise.value)}, "
            "while BLEU is still rising.",
            advice="Judge by BLEU: go on, and keep the checkpoint with the best BLEU.",
        )
    real *= chance_above(Estimate(value=rise.value, low=rise.low, high=rise.high), RISEN * lowest)
    return Draft(
        verdict="yes",
        grounds=Grounds(
            chance=real * (1 - bleu_chance), lacks=lacks if bleu is not None else (_no_bleu(series), *lacks)
        ),
        answer=f"Yes, since about step {place}: {loss}, and later steps made it worse by {decimal(rise.value)}.",
        advice="Use the best checkpoint, not the last; more steps of this kind will not help.",
    )


def _thrown_off(
    outlook: Outlook, valid: Curve, rise: Rise, loss: str, *, chance: float, probed: bool
) -> Draft:
    """Training pairs got worse too, since the lowest point."""
    if outlook.has_risen(valid.step, rise.lowest):
        return Draft(
            answer=f"Cannot tell: {loss}, and rose by {decimal(rise.value)} since, but so did the learning rate.",
            advice=wait_for_decay(outlook),
            missing=(AFTER_DECAY,),
        )
    return Draft(
        verdict="no",
        grounds=Grounds(chance=chance, lacks=() if probed else (PROBE,)),
        answer=f"No: {loss} and rose by {decimal(rise.value)} since, on training pairs too: it was thrown off.",
        advice="Go back to a checkpoint from before, and lower the learning rate.",
    )


def _by_gain(series: Series, outlook: Outlook, loss: Gain, bleu: Gain | None, valid: Curve) -> Draft:
    worth = worth_of(loss)
    chance, by_steps = loss.chance_above(worth), loss.chance_by_steps(worth)
    bleu_chance = bleu.chance_above(WORTH_BLEU) if bleu is not None else 0.0
    expected = (
        f"half as many steps again would lower the loss on the valid text by about {relative_gain(loss)}"
        + (_raised(bleu) if bleu is not None else "")
    )
    missing = () if bleu is not None else (_no_bleu(series),)
    if by_steps >= RATHER:
        return Draft(
            verdict="no",
            grounds=Grounds(
                chance=by_steps,
                # A fall of the curve may be that of a rate which nobody knows.
                kind=Kind.ASSUMED if isnan(outlook.now) else Kind.MEASURED,
                lacks=lacks_for_sure(outlook, valid),
            ),
            answer=f"No: {expected}.{outlook.sentence}{_stopped(series)}",
            advice=go_on(outlook),
            missing=missing,
        )
    if is_stuck(series):
        return draft_stuck(loss.level, ground_stuck(series), missing)
    if chance >= RATHER:
        return _by_decay(outlook, chance_of_better(outlook, loss, valid), expected, valid, missing)
    together = weigh_together(chance, bleu_chance if bleu is not None else None)
    if together.bleu_alone >= 1 / 2 and chance <= 1 - LIKELY:
        return Draft(
            verdict="partly",
            grounds=ground_rest(outlook, valid, chance=together.bleu_alone),
            answer=f"By its loss yes, by BLEU not yet: {expected}.",
            advice=go_on(outlook),
        )
    if chance <= 1 - LIKELY and bleu_chance <= 1 / 2:
        return Draft(
            verdict="yes",
            grounds=ground_rest(outlook, valid, chance=1 - chance - bleu_chance, lacks=missing),
            answer=f"Yes: {expected}, which is less than what counts (1 % of the loss, 0.2 BLEU)."
            + say_undecayed(outlook),
            advice=try_decay(outlook),
            missing=missing,
        )
    return _undecided(outlook, loss, bleu, expected, missing)


def _by_decay(
    outlook: Outlook, chance: float, expected: str, valid: Curve, missing: tuple[str, ...]
) -> Draft:
    return Draft(
        verdict="no",
        grounds=ground_fall(outlook, valid, chance=chance),
        answer=f"No, not yet: with the fall of the learning rate that is still planned, {expected}.{outlook.sentence}",
        advice=wait_for_decay(outlook),
        missing=missing,
        would_change=AFTER,
    )


def _raised(bleu: Gain) -> str:
    """What is said of BLEU; nothing where it would be noughts."""
    numbers = [f"{each:.2f}" for each in (bleu.estimate.value, bleu.estimate.low, bleu.estimate.high)]
    if all(float(each) == 0 for each in numbers):
        return ""
    value, low, high = numbers
    return f" and raise BLEU by about {value} (between {low} and {high})"


def _no_bleu(series: Series) -> str:
    if any(each.scores for each in series.evaluations):
        return "BLEU of translations: what the other tool calls a score is none"
    if any(0 < each.sentences < FEWEST_SENTENCES for each in series.evaluations):
        return f"BLEU of at least {FEWEST_SENTENCES} sentences"
    return f"BLEU over at least {FEWEST} evaluations"


def _undecided(
    outlook: Outlook, loss: Gain, bleu: Gain | None, expected: str, missing: tuple[str, ...]
) -> Draft:
    """What is most likely, where nothing is sure: by both gains, in units of what counts."""
    by_loss = loss.chance_above(worth_of(loss))
    by_bleu = bleu.chance_above(WORTH_BLEU) if bleu is not None else None
    gain = loss.spread / worth_of(loss)
    if bleu is not None:
        # The draws of both are independent, but come in the same order.
        gain = np.maximum(gain, np.roll(bleu.spread, len(gain) // 2) / WORTH_BLEU)
    below, above = float(np.mean(gain < NEAR[0])), float(np.mean(gain > NEAR[1]))
    likely: dict[Verdict, float] = {"yes": below, "partly": 1 - below - above, "no": above}
    verdict = max(likely, key=lambda each: likely[each])
    together = weigh_together(by_loss, by_bleu)
    chances: dict[Verdict, float] = {
        # Two looks at one model share their errors: they are no surer together than each is.
        "yes": min(together.neither, 1 - by_loss, 1 - (by_bleu or 0.0)),
        # Close to the border means that neither side is sure.
        "partly": min(likely["partly"], max(by_loss, 1 - by_loss)),
        "no": together.both,
    }
    if chances[verdict] < 1 / 2:
        return Draft(
            answer=f"Cannot tell: {expected}, but the evaluations are too few or too noisy to say which side of 1 %.",
            advice="Let it run for a few more evaluations.",
            missing=(MORE_EVALUATIONS, *missing),
        )
    says = {
        "yes": f"Probably: {expected}, which is less than what counts (1 % of the loss, 0.2 BLEU).",
        "partly": f"Nearly: {expected}, which is close to what counts as worth while (1 %).",
        "no": f"Probably not: {expected}.",
    }
    return Draft(
        verdict=verdict,
        grounds=Grounds(
            chance=chances[verdict],
            kind=Kind.MEASURED if outlook.is_known else Kind.ASSUMED,
            lacks=(MORE_EVALUATIONS, *missing),
        ),
        answer=f"{says[verdict]}{outlook.sentence}",
        advice="Let it run for a few more evaluations.",
        missing=missing,
    )


def _stopped(series: Series) -> str:
    return f" That it ended ({series.ended}) says nothing about this." if series.ended else ""


def _evidence(series: Series, outlook: Outlook, valid: Curve, bleu: Curve) -> tuple[Evidence, ...]:
    ahead = (
        Evidence(
            name="fall of the learning rate still planned",
            value=outlook.ahead,
            unit="share",
            definition="Of what the rate would be without its fall to zero at the end of the plan. A whole fall "
            "usually lowers the loss by 2 to 7 %, which a curve from before it does not show.",
            figure="learning_rate",
        ),
    )
    return (
        Evidence(name="what fully trained means", value=DEFINITION, definition="As used for this answer."),
        Evidence(
            name="evaluations",
            value=float(len(valid)),
            definition="Evaluations after step 0 with a finite loss on the valid text.",
            figure="losses",
        ),
        *(ahead if outlook.plan is not None else ()),
        *gain_evidence(series, outlook, valid, bleu),
    )
