"""Which of several runs is better in one respect, or that the difference is inside noise, and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from statistics import NormalDist
from typing import Literal

from tandem.observe.numbers import percent
from tandem.observe.report.quantity import quantity

__all__ = [
    "CHANCE",
    "Judgement",
    "Outcome",
    "Question",
    "Value",
    "judge",
    "short",
    "shown",
    "stretch",
    "unjudged",
]

CHANCE = 0.05
"""A difference that chance makes at least this often tells nothing apart."""

Verdict = Literal["better", "inside noise", "cannot tell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What one run has, with its 95 % interval; its ends are nan where there is none."""

    run: str
    value: float
    low: float = nan
    high: float = nan
    step: int | None = None
    """At which it was measured; None for what lies between evaluations, or belongs to no step."""

    @property
    def half(self) -> float:
        """Half of the interval: how far the value may be off."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of the runs."""

    key: str
    title: str
    unit: str
    """As the reports write it; empty for scores."""
    digits: int = 2
    is_lower_better: bool = False
    is_of_recipes: bool = False
    """Whether values belong to recipes, over several runs of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whether two values are told apart; None where nobody can say."""

    is_told: bool | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The answer to a question."""

    question: Question
    values: tuple[Value, ...]
    """The best first; runs without a value are not among them."""
    verdict: Verdict
    better: str
    """The run that is better than all others; empty where none is known to be."""
    worse: tuple[str, ...]
    """Runs that are told apart from the best value."""
    answer: str
    why: str


Tell = Callable[[Value, Value, float], Outcome]
"""Tells a better value from another; the number is the chance of error that each pair may have."""


def judge(question: Question, values: Sequence[Value], tell: Tell) -> Judgement:
    """Compare the run that looks best with each of the others."""
    ranked = tuple(
        sorted(
            (value for value in values if isfinite(value.value)),
            key=lambda value: value.value,
            reverse=not question.is_lower_better,
        )
    )
    if len(ranked) < 2:
        told = f"Only {ranked[0].run} has it." if ranked else "No run has it."
        return _judgement(question, ranked, "cannot tell", f"Cannot be compared: {told}")
    first, others = ranked[0], ranked[1:]
    outcomes = [tell(first, other, CHANCE / len(others)) for other in others]
    why = " ".join(dict.fromkeys(outcome.why for outcome in outcomes if outcome.why))
    unsure = [value for value, outcome in zip(others, outcomes, strict=True) if outcome.is_told is None]
    if unsure:
        names = _listed([value.run for value in unsure])
        return _judgement(
            question, ranked, "cannot tell", f"{first.run} cannot be compared with {names}.", why=why
        )
    beaten = [value for value, outcome in zip(others, outcomes, strict=True) if outcome.is_told]
    tied = [value for value in others if value not in beaten]
    if not tied:
        answer = f"{first.run} is better than {_figures(question, beaten)}: {shown(question, first)}."
        return _judgement(question, ranked, "better", answer, why=why, beaten=beaten)
    answer = (
        f"{first.run} has {shown(question, first)}, but is not told apart from {_figures(question, tied)}."
    )
    if beaten:
        answer += f" It is better than {_figures(question, beaten)}."
    return _judgement(question, ranked, "inside noise", answer, why=why, beaten=beaten)


def unjudged(question: Question, reason: str) -> Judgement:
    """The answer where there is nothing to compare."""
    return _judgement(question, (), "cannot tell", f"Cannot be compared: {reason}")


def shown(question: Question, value: Value) -> str:
    """A value as text, with its interval."""
    number = _number(question, value.value)
    if not isfinite(value.half):
        return number
    return f"{number} ({_number(question, value.low)} to {_number(question, value.high)})"


def short(question: Question, value: Value) -> str:
    """A value for a table: with half of its interval, in percent where it has a unit."""
    number = _number(question, value.value)
    if not isfinite(value.half):
        return number
    return (
        f"{number} ± {percent(value.half / value.value) if question.unit else _number(question, value.half)}"
    )


def stretch(chance: float) -> float:
    """By how much 95 % intervals must grow where only this chance of error is left to each pair."""
    normal = NormalDist()
    return normal.inv_cdf(1 - chance / 2) / normal.inv_cdf(1 - CHANCE / 2) if chance > 0 else inf


def _judgement(
    question: Question,
    values: tuple[Value, ...],
    verdict: Verdict,
    answer: str,
    *,
    why: str = "",
    beaten: Sequence[Value] = (),
) -> Judgement:
    return Judgement(
        question=question,
        values=values,
        verdict=verdict,
        better=values[0].run if verdict == "better" else "",
        worse=tuple(value.run for value in beaten),
        answer=answer,
        why=why,
    )


def _figures(question: Question, values: Sequence[Value]) -> str:
    return _listed([f"{value.run} ({_number(question, value.value)})" for value in values])


def _number(question: Question, number: float) -> str:
    return quantity(number, question.unit) if question.unit else f"{number:.{question.digits}f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
