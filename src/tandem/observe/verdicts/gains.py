"""What more steps would bring, as evidence: the gains that curves promise, their slopes and their best points."""

from dataclasses import dataclass

from tandem.observe.curve_fits import Gain, expect_gains
from tandem.observe.finding import Evidence
from tandem.observe.learning import Curve, least_noise, recent_part, upside_down
from tandem.observe.numbers import count, decimal, percent
from tandem.observe.outlook import Outlook
from tandem.observe.series.columns import Series
from tandem.observe.statistics import slope_of

__all__ = [
    "FEWEST",
    "MORE",
    "WORTH_BLEU",
    "WORTH_SHARE",
    "Together",
    "bleu_gains",
    "gain_evidence",
    "loss_gains",
    "relative_gain",
    "weigh_together",
    "worth_of",
]

MORE = 1.5
"""The question is what half as many steps again would bring."""
TWICE = 2.0
FEWEST = 4
"""Evaluations from which a curve can be continued."""
WORTH_SHARE = 0.01
WORTH_NATS = 0.005
"""A gain counts from one percent of the loss on, and from this much where the loss is small."""
WORTH_BLEU = 0.2
LOWEST_BLEU = -100.0
BLEU_SCALE = 30.0
"""Points of BLEU that go with a loss of nothing where a loss that is lower by a share goes with so many points more."""
APART = 0.2
"""How often one of loss and BLEU is still to gain and the other is not, before anything is seen."""


def loss_gains(curve: Curve, outlook: Outlook) -> tuple[Gain, ...]:
    """By how much a loss falls over half as many steps again, and over as many again, with what the plan has left."""
    scale = float(curve.value[-1])
    return _gains(curve, outlook, floor=least_noise(curve), least=0.0, scale=scale)


def bleu_gains(curve: Curve, outlook: Outlook) -> tuple[Gain, ...]:
    """By how much BLEU rises over the same."""
    return _gains(upside_down(curve), outlook, floor=curve.floor, least=LOWEST_BLEU, scale=BLEU_SCALE)


def worth_of(gain: Gain) -> float:
    """The gain of a loss that counts."""
    return max(WORTH_NATS, WORTH_SHARE * gain.level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Chances of what loss and BLEU will gain, as two looks at one model.

    Where they seem to disagree, that says first of all that one of the two is misjudged.
    """

    both: float
    """That both will gain what counts."""
    neither: float
    bleu_alone: float
    """That BLEU will, and the loss will not."""


def weigh_together(by_loss: float, by_bleu: float | None) -> Together:
    """From the chance of each for itself; the loss alone where there is no BLEU."""
    if by_bleu is None:
        return Together(both=by_loss, neither=1 - by_loss, bleu_alone=0.0)
    both, neither = ((1 - APART) * each for each in (by_loss * by_bleu, (1 - by_loss) * (1 - by_bleu)))
    bleu_alone, loss_alone = (APART * each for each in (by_bleu * (1 - by_loss), by_loss * (1 - by_bleu)))
    whole = both + neither + bleu_alone + loss_alone
    return Together(both=both / whole, neither=neither / whole, bleu_alone=bleu_alone / whole)


def relative_gain(gain: Gain) -> str:
    """A gain as a share of where the curve is, with its interval."""
    value, low, high = (
        percent(max(-1.0, number / gain.level)) if gain.level > 0 else "0 %"
        for number in (gain.estimate.value, gain.estimate.low, gain.estimate.high)
    )
    return f"{value} (between {low} and {high})"


def gain_evidence(series: Series, outlook: Outlook, valid: Curve, bleu: Curve) -> list[Evidence]:
    """Of both curves, where they have points enough: slope and gains; and the best step of each."""
    found = []
    if len(valid) >= FEWEST:
        found += _of_curve("loss on the valid text", valid, loss_gains(valid, outlook), "losses")
        found += _to_plan(series, outlook, valid)
    if len(bleu) >= FEWEST:
        found += _of_curve("BLEU", bleu, bleu_gains(bleu, outlook), "bleu")
    return found + _best(valid, bleu)


def _gains(curve: Curve, outlook: Outlook, *, floor: float, least: float, scale: float) -> tuple[Gain, ...]:
    recent = recent_part(curve)
    ends = (MORE * recent.step[-1], TWICE * recent.step[-1])
    decay = outlook.decay(recent.step, scale=scale)
    clock = outlook.clock(recent.step, ends)
    return expect_gains(
        recent.step, recent.value, ends=ends, floor=floor, least=least, decay=decay, by_rates=clock
    )


def _of_curve(name: str, curve: Curve, gains: tuple[Gain, ...], figure: str) -> list[Evidence]:
    late = max(3, len(recent_part(curve)) // 2 + 1)
    slope = slope_of(curve.step[-late:], curve.value[-late:])
    found = [
        Evidence(
            name=f"slope of {name}",
            value=slope.value * 1000,
            unit="per 1,000 steps",
            low=slope.low * 1000,
            high=slope.high * 1000,
            definition="Least squares over the later half of the recent evaluations (from a quarter of the steps on); "
            "the interval is widened where neighbours are alike.",
            figure=figure,
        )
    ]
    for gain, more in zip(gains, ("half as many", "as many"), strict=True):
        found.append(
            Evidence(
                name=f"expected gain in {name} from {more} steps again",
                value=gain.estimate.value,
                low=gain.estimate.low,
                high=gain.estimate.high,
                definition="Power laws and exponentials with an asymptote, whole, broken off or turning up, by steps "
                "and by the sum of the learning rates, fitted from a quarter of the steps on and weighted by how "
                "likely each is; the interval holds the doubt between and within them.",
                figure=figure,
            )
        )
    return found


def _to_plan(series: Series, outlook: Outlook, valid: Curve) -> list[Evidence]:
    planned, recent = series.started.max_steps if series.started is not None else 0, recent_part(valid)
    if planned <= recent.step[-1]:
        return []
    ends, floor = (float(planned),), least_noise(valid)
    decay = outlook.decay(recent.step, scale=float(recent.value[-1]))
    clock = outlook.clock(recent.step, ends)
    (gain,) = expect_gains(
        recent.step, recent.value, ends=ends, floor=floor, least=0.0, decay=decay, by_rates=clock
    )
    return [
        Evidence(
            name="expected gain in loss on the valid text from the steps still planned",
            value=gain.estimate.value,
            low=gain.estimate.low,
            high=gain.estimate.high,
            definition=f"As above, up to step {count(planned)}.",
            figure="losses",
        )
    ]


def _best(valid: Curve, bleu: Curve) -> list[Evidence]:
    found = []
    for name, curve, place, figure in (
        ("step with the lowest loss on the valid text", valid, "argmin", "losses"),
        ("step with the highest BLEU", bleu, "argmax", "bleu"),
    ):
        if len(curve):
            best = int(getattr(curve.value, place)())
            found.append(
                Evidence(
                    name=name,
                    value=float(curve.step[best]),
                    definition=f"Among the evaluations; it was {decimal(float(curve.value[best]))} there.",
                    figure=figure,
                )
            )
    return found
