"""What a learning rate has still to do: how sure an answer can be before it is seen, and what is said of it."""

import numpy as np

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.curve_fits import Gain, chance_of_decay
from tandem.observe.learning import Curve, recent_part, rise_of
from tandem.observe.numbers import count
from tandem.observe.outlook import LITTLE, Outlook, read_rates
from tandem.observe.verdicts.gains import WORTH_SHARE, worth_of

__all__ = [
    "AFTER",
    "AFTER_DECAY",
    "MORE_EVALUATIONS",
    "chance_of_better",
    "go_on",
    "ground_fall",
    "ground_rest",
    "lacks_for_sure",
    "say_undecayed",
    "try_decay",
    "wait_for_decay",
]

AFTER_DECAY = "the loss on the valid text after the learning rate has fallen"
WHAT_DECAY_BRINGS = "what a fall of the learning rate to zero would bring"
AS_RUN = "the learning rate as run"
UNKNOWN_PLAN = "how the learning rate goes on"
MORE_EVALUATIONS = "more evaluations, or a larger valid set"
ENOUGH = 6
"""Evaluations from which a curve is told from a chance of few."""
SEEN = 0.3
"""Share of the undecayed rate: evaluations on both sides of such a fall show what it brings."""
OFTEN = 0.5
"""How often a learning rate of which no plan is known falls to zero in the end."""
AFTER = (
    "Evaluations after the learning rate has fallen as planned: a loss on the valid text that stays within its noise "
    "from there on says yes."
)


def ground_rest(outlook: Outlook, valid: Curve, *, chance: float, lacks: tuple[str, ...] = ()) -> Grounds:
    """Grounds of an answer by which little is to come: it needs to be known how the learning rate goes on."""
    is_assumed = (
        not outlook.is_known or outlook.ahead >= LITTLE or (outlook.never_decays and not outlook.is_complete)
    )
    shares = outlook.shares(valid.step)
    if outlook.never_decays:
        lacks = (*lacks, WHAT_DECAY_BRINGS)
    lacks = (*lacks, *lacks_for_sure(outlook, valid))
    if not outlook.is_known:
        chance *= 1 - OFTEN * chance_of_decay(outlook.most_ahead, WORTH_SHARE)
    if not len(read_rates(outlook.series)):
        lacks = (*lacks, AS_RUN)
    if shares is not None and shares[-1] - outlook.now >= LITTLE:
        lacks = (*lacks, AFTER_DECAY)
    return Grounds(chance=chance, kind=Kind.ASSUMED if is_assumed else Kind.MEASURED, lacks=lacks)


def lacks_for_sure(outlook: Outlook, valid: Curve) -> tuple[str, ...]:
    """What is not known of a curve of which a continuation is to be sure."""
    unknown = (UNKNOWN_PLAN,) if outlook.plan is None else ()
    return (*unknown, *((MORE_EVALUATIONS,) if len(valid) < ENOUGH else ()))


def chance_of_better(outlook: Outlook, loss: Gain, valid: Curve) -> float:
    """That it is worth it; a loss that rose because the learning rate did has to come back to its lowest first."""
    rise = rise_of(valid)
    behind = rise.value if outlook.has_risen(valid.step, rise.lowest) else 0.0
    return loss.chance_above(worth_of(loss) + behind)


def ground_fall(outlook: Outlook, valid: Curve, *, chance: float) -> Grounds:
    """Grounds of what a fall of the learning rate will bring: a curve from before it cannot say how much that is."""
    shares = outlook.shares(recent_part(valid).step)
    is_seen = shares is not None and float(np.ptp(shares)) >= SEEN
    return Grounds(chance=chance, kind=Kind.MEASURED if is_seen else Kind.ASSUMED, lacks=(AFTER_DECAY,))


def wait_for_decay(outlook: Outlook) -> str:
    """Advice where a fall of the rate decides."""
    if outlook.plan is None:
        return "Let the learning rate fall before judging."
    return f"Let the plan go on to step {count(outlook.plan.last)}, or plan for fewer steps, and judge after the fall."


def say_undecayed(outlook: Outlook) -> str:
    """What is said of a rate that was not seen to fall, with a blank before it; empty where that is nothing."""
    if outlook.never_decays:
        return (
            " That is at a rate that never falls: a fall to zero, which was not tried, usually brings more."
        )
    if not outlook.is_known:
        return " How the learning rate would go on is not known, and a fall to zero usually brings more."
    return outlook.sentence


def try_decay(outlook: Outlook) -> str:
    """Advice where the rate never falls."""
    if outlook.never_decays:
        return (
            "Let the rate fall to zero over some last steps (optim.cooldown_steps), and see what that brings."
        )
    return ""


def go_on(outlook: Outlook) -> str:
    """Advice where more steps are worth it."""
    if outlook.plan is not None and outlook.plan.has_end and outlook.ahead < LITTLE:
        return (
            "Train on with a plan for more steps (train.max_steps): this one ends at a learning rate of zero."
        )
    return "Go on training."
