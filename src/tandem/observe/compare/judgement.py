"""Which of several runs is better in one respect, or that the difference is inside noise, and why."""

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    "judged_runs",
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
    is_broken: bool = False
    """Whether it was measured and is no finite number: worse than any that is."""

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
    left_out: tuple[str, ...]
    """Runs with a value that cannot be compared with those that are judged."""
    verdict: Verdict
    better: str
    """The run that is better than all others that are judged; empty where none is known to be."""
    worse: tuple[str, ...]
    """Runs that are told apart from the best value."""
    answer: str
    why: str


Tell = Callable[[Value, Value, float], Outcome]
"""Tells a better value from another; the number is the chance of error that each pair may have."""


def judge(question: Question, values: Sequence[Value], tell: Tell) -> Judgement:
    """Compare the run that looks best with each of the others, where not all can be compared in the largest set."""
    ranked = _ranked(question, values)
    if len(ranked) < 2:
        told = f"Only {ranked[0].run} has it." if ranked else "No run has it."
        return _unknown(question, ranked, f"Cannot be compared: {told}")
    if ranked[0].is_broken:
        return _unknown(question, ranked, "Cannot be compared: no run has a finite value.")
    first, *others = _judged(ranked, tell)
    left_out = [value for value in ranked if value is not first and value not in others]
    if not others:
        answer = f"{first.run} cannot be compared with {_listed([value.run for value in left_out])}."
        return _unknown(
            question, ranked, answer, why=_told(tell(first, each, CHANCE).why for each in left_out)
        )
    outcomes = [tell(first, other, CHANCE / len(others)) for other in others]
    beaten = [value for value, outcome in zip(others, outcomes, strict=True) if outcome.is_told]
    tied = [value for value in others if value not in beaten]
    if tied:
        answer = f"{first.run} has {shown(question, first)}, but is not told apart from {_figures(question, tied)}."
        answer += f" It is better than {_figures(question, beaten)}." if beaten else ""
    else:
        answer = f"{first.run} is better than {_figures(question, beaten)}: {shown(question, first)}."
    if left_out:
        answer += f" Left out, as not comparable with {first.run}: {_figures(question, left_out)}."
    return Judgement(
        question=question,
        values=ranked,
        left_out=tuple(value.run for value in left_out),
        verdict="inside noise" if tied else "better",
        better="" if tied else first.run,
        worse=tuple(value.run for value in beaten),
        answer=answer,
        why=_told([*(outcome.why for outcome in outcomes), *_reasons(first, left_out, tell)]),
    )


def judged_runs(question: Question, values: Sequence[Value], tell: Tell) -> list[str]:
    """Those that would be judged by these values; nobody, where there is no finite one."""
    ranked = _ranked(question, values)
    if not ranked or ranked[0].is_broken:
        return []
    return [value.run for value in _judged(ranked, tell)]


def _judged(ranked: Sequence[Value], tell: Tell) -> list[Value]:
    """Those that can be compared with one another, the best first; at least one has a finite value."""
    finite = _comparable([value for value in ranked if not value.is_broken], tell)
    return [
        *finite,
        *(value for value in ranked if value.is_broken and _can_be_compared(finite[0], value, tell)),
    ]


def _ranked(question: Question, values: Sequence[Value]) -> tuple[Value, ...]:
    """Those that there are, the best first."""
    finite = sorted(
        (value for value in values if isfinite(value.value)),
        key=lambda value: value.value,
        reverse=not question.is_lower_better,
    )
    return (*finite, *(value for value in values if value.is_broken))


def _comparable(ranked: Sequence[Value], tell: Tell) -> Sequence[Value]:
    """All where the best can be compared with all; else the largest set, of equal ones that of the better."""
    if all(_can_be_compared(ranked[0], other, tell) for other in ranked[1:]):
        return ranked
    sets: list[list[Value]] = []
    for value in ranked:
        fitting = next(
            (each for each in sets if all(_can_be_compared(held, value, tell) for held in each)), None
        )
        if fitting is None:
            sets.append([value])
        else:
            fitting.append(value)
    return max(sets, key=len)


def _can_be_compared(one: Value, other: Value, tell: Tell) -> bool:
    return tell(one, other, CHANCE).is_told is not None


def _reasons(first: Value, left_out: Sequence[Value], tell: Tell) -> Iterator[str]:
    """Why runs were left out, each reason once."""
    found: dict[str, list[str]] = {}
    for value in left_out:
        found.setdefault(tell(first, value, CHANCE).why, []).append(value.run)
    return (f"{', '.join(runs)} left out: {why}" for why, runs in found.items())


def _told(reasons: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(filter(None, reasons)))


def unjudged(question: Question, reason: str) -> Judgement:
    """The answer where there is nothing to compare."""
    return _unknown(question, (), f"Cannot be compared: {reason}")


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


def _unknown(question: Question, values: tuple[Value, ...], answer: str, *, why: str = "") -> Judgement:
    return Judgement(
        question=question,
        values=values,
        left_out=(),
        verdict="cannot tell",
        better="",
        worse=(),
        answer=answer,
        why=why,
    )


def _figures(question: Question, values: Sequence[Value]) -> str:
    return _listed([f"{value.run} ({_number(question, value.value)})" for value in values])


def _number(question: Question, number: float) -> str:
    return quantity(number, question.unit) if question.unit else f"{number:.{question.digits}f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
