"""How sure an answer is: computed here, from what it rests on, and nowhere else.

A verdict cannot choose its confidence. It states its grounds: the chance that the deciding number lies on the side of
the borders that the answer names, the kind of the weakest evidence needed, the share of the run behind it, and what
is missing. The confidence follows.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf, isnan
from statistics import NormalDist
from typing import Literal, TypeAlias

from tandem.observe.statistics import Estimate

__all__ = [
    "Confidence",
    "Decision",
    "Grounds",
    "Kind",
    "Scale",
    "confidence_of",
    "decide",
    "reason_of",
    "spread_over",
]

Confidence: TypeAlias = Literal["high", "medium", "low", "none"]
"""`none` goes with the verdict `cannot tell`, and only with it."""

SURE, LIKELY, RATHER = 0.99, 0.90, 0.50
"""Chances from which an answer has high, medium and low confidence; below the last there is no answer."""
NEARLY_ALL, MOST = 0.90, 0.50
"""Shares of the run from which high and medium confidence are possible."""
_Z95 = 1.96
_NORMAL = NormalDist()
_RANKS: tuple[Confidence, ...] = ("none", "low", "medium", "high")


class Kind(StrEnum):
    """Where a number comes from."""

    MEASURED = "measured"
    BOUND = "bound"
    """One end is measured and the other is not known: it proves only what lies beyond that end."""
    NOMINAL = "nominal"
    """Ordered, configured or claimed by a driver, and not measured."""
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What an answer rests on."""

    chance: float = 1.0
    """Probability that the deciding number lies where the answer says, by its interval and the borders there."""
    kind: Kind = Kind.MEASURED
    """Of the weakest evidence that the answer needs."""
    coverage: float = 1.0
    """Share of the run's training time that the evidence speaks for, 0 to 1."""
    lacks: tuple[str, ...] = ()
    """Measurements that the question needs and the log does not have."""
    contradicted: tuple[str, ...] = ()
    """What else in the same report cannot hold beside the answer."""


def confidence_of(grounds: Grounds) -> Confidence:
    """The confidence that the grounds allow; `none` means that nothing can be said."""
    return min((limit for limit, _ in _limits(grounds)), key=_RANKS.index)


def reason_of(grounds: Grounds) -> str:
    """Half a sentence that says what limits the confidence; empty where nothing does."""
    confidence = confidence_of(grounds)
    if confidence == "high":
        return ""
    reasons = _limits(grounds)
    return "; ".join(text for limit, text in reasons if limit == confidence)


def _limits(grounds: Grounds) -> tuple[tuple[Confidence, str], ...]:
    """The most that each part of the grounds allows, and why it is no more."""
    by_chance = _graded(grounds.chance, SURE, LIKELY, RATHER)
    is_measured = grounds.kind in {Kind.MEASURED, Kind.BOUND}
    # What is not measured may be off by more than any interval says.
    by_kind: Confidence = "high" if is_measured else "low" if grounds.chance >= LIKELY else "none"
    return (
        (by_chance, "the interval reaches over a border of the answer"),
        (by_kind, f"it rests on a number that is {grounds.kind}, not measured"),
        (
            _graded(grounds.coverage, NEARLY_ALL, MOST, 0.0),
            f"the evidence speaks for {100 * grounds.coverage:.0f} % of the training time",
        ),
        ("medium" if grounds.lacks else "high", f"not measured: {', '.join(grounds.lacks)}"),
        ("low" if grounds.contradicted else "high", "; ".join(grounds.contradicted)),
    )


def spread_over(share: Estimate, coverage: float) -> Estimate:
    """The interval of a share of the whole time, where it was measured in a part of the time only.

    In the part that was not looked at the share may be anything from 0 to 1.
    """
    return Estimate(
        value=share.value,
        low=max(0.0, share.low) * coverage,
        high=min(1.0, share.high) * coverage + 1 - coverage,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The borders of a number and the answers between them, from the lowest to the highest."""

    borders: tuple[float, ...]
    answers: tuple[str, ...]
    """One more than borders."""

    def answer_of(self, value: float) -> str:
        """The answer for a number that is known exactly."""
        return self.answers[sum(value >= border for border in self.borders)]

    def weigh(self, estimate: Estimate) -> tuple[str, float]:
        """The answer that is most likely by the interval, and its chance."""
        chances: dict[str, float] = {}
        edges = (-inf, *self.borders, inf)
        for answer, low, high in zip(self.answers, edges[:-1], edges[1:], strict=True):
            chances[answer] = chances.get(answer, 0.0) + _below(estimate, high) - _below(estimate, low)
        best = max(chances, key=lambda answer: chances[answer])
        return best, chances[best]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An answer by a scale, and its grounds; `cannot tell` where they allow no answer."""

    answer: str
    grounds: Grounds


def decide(
    scale: Scale,
    estimate: Estimate,
    *,
    kind: Kind = Kind.MEASURED,
    coverage: float = 1.0,
    lacks: tuple[str, ...] = (),
) -> Decision:
    """The answer that is most likely by an estimate, if what it rests on allows one."""
    answer, chance = scale.weigh(estimate)
    grounds = Grounds(chance=chance, kind=kind, coverage=coverage, lacks=lacks)
    return Decision(answer="cannot tell" if confidence_of(grounds) == "none" else answer, grounds=grounds)


def _graded(value: float, high: float, medium: float, low: float) -> Confidence:
    if isnan(value) or value < low:
        return "none"
    return "high" if value >= high else "medium" if value >= medium else "low"


def _below(estimate: Estimate, border: float) -> float:
    """Chance that the number is below a border; each side of the interval has a spread of its own."""
    if border in {inf, -inf}:
        return float(border > 0)
    half = estimate.high - estimate.value if border >= estimate.value else estimate.value - estimate.low
    if half <= 0:
        return float(border > estimate.value)
    return _NORMAL.cdf((border - estimate.value) / half * _Z95)
