"""What is said of a run whose valid text was hardly looked at, or which has learnt next to nothing."""

from dataclasses import replace

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.curve_fits import chance_of_decay, expect_gains
from tandem.observe.learning import (
    FEW_BLEU,
    Curve,
    bleu_curve,
    chance_above,
    is_stuck,
    recent_part,
    train_curve,
    valid_curve,
)
from tandem.observe.numbers import count, decimal
from tandem.observe.outlook import LITTLE, Outlook
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Estimate
from tandem.observe.verdicts.draft import Draft
from tandem.observe.verdicts.gains import FEWEST, MORE, WORTH_SHARE, relative_gain
from tandem.observe.verdicts.still_to_come import AFTER, go_on, wait_for_decay
from tandem.observe.verdicts.words import evaluate_more

__all__ = ["draft_stuck", "draft_unsettled", "ground_stuck", "judge_training_loss"]

SURE = 0.95
"""Chance of a training loss that goes on falling, from which it is taken for the valid one's."""


def judge_training_loss(series: Series, outlook: Outlook) -> Draft:
    """Too few evaluations: a training loss that clearly falls still says no, and nothing says yes."""
    missing = (f"the loss on the valid text after at least {FEWEST} steps",)
    train = train_curve(series)
    recent, valid = recent_part(train), valid_curve(series).value
    if len(recent) >= 2 * FEWEST and (len(valid) == 0 or valid[-1] <= valid.min()):
        ends = (MORE * recent.step[-1],)
        decay = replace(outlook.decay(recent.step, scale=float(recent.value[-1])), begin=1.0, end=1.0)
        (gain,) = expect_gains(recent.step, recent.value, ends=ends, floor=1e-9, least=0.0, decay=decay)
        chance = gain.chance_above(2 * WORTH_SHARE * gain.level)
        if chance >= SURE:
            return Draft(
                verdict="no",
                grounds=Grounds(chance=chance, kind=Kind.ASSUMED),
                answer=(
                    f"No: the training loss is still falling, by about {relative_gain(gain)} over half as many steps "
                    "again; there are too few evaluations to say more."
                ),
                advice=go_on(outlook),
                missing=missing,
            )
    if len(recent) >= 2 * FEWEST and is_stuck(series):
        return draft_stuck(float(recent.value[-1]), Grounds(kind=Kind.ASSUMED), missing)
    if outlook.ahead >= LITTLE:
        return Draft(
            verdict="no",
            grounds=Grounds(chance=chance_of_decay(outlook.ahead, WORTH_SHARE), kind=Kind.ASSUMED),
            answer=f"No, not yet:{outlook.sentence} That usually lowers the loss by more than 1 %.",
            advice=wait_for_decay(outlook),
            missing=missing,
            would_change=AFTER,
        )
    return Draft(
        answer=(
            f"Cannot tell: there {_are(len(valid))} on the valid text, and the training loss alone "
            "does not say."
        ),
        advice=evaluate_more(series),
        missing=missing,
    )


def ground_stuck(series: Series) -> Grounds:
    """By BLEU; without it, how low the loss has to be is a rule of thumb."""
    bleu = bleu_curve(series)
    if not len(bleu):
        return Grounds(kind=Kind.ASSUMED)
    half = 1.96 * bleu.floor
    now = float(bleu.value[-1])
    return Grounds(chance=1 - chance_above(Estimate(value=now, low=now - half, high=now + half), FEW_BLEU))


def draft_stuck(level: float, grounds: Grounds, missing: tuple[str, ...]) -> Draft:
    """The answer for a model that learns no more, and has learnt next to nothing."""
    return Draft(
        verdict="no",
        grounds=grounds,
        answer=(
            f"No: it is stuck: the loss has settled at {decimal(level)}, which a model reaches that knows "
            "little more than which pieces are frequent."
        ),
        advice="Look at the data and the learning rate (too high is the usual cause), and start again.",
        missing=missing,
    )


def _are(evaluations: int) -> str:
    return "is one evaluation" if evaluations == 1 else f"are {evaluations or 'no'} evaluations"


def draft_unsettled(seen: Curve, kept: Curve) -> Draft | None:
    """The loss jumped up lately: where it settles is not seen yet."""
    jumped = sorted(set(seen.step.tolist()) - set(kept.step.tolist()))
    if not jumped or int((kept.step > jumped[-1]).sum()) >= FEWEST:
        return None
    at = count(int(jumped[-1]))
    return Draft(
        answer=f"Cannot tell: the loss on the valid text jumped up around step {at} and may not have settled.",
        advice="Let it run for a few more evaluations.",
        missing=(f"{FEWEST} evaluations after the jump",),
    )
