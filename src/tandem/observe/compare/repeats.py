"""Runs of one recipe that differ in their seed alone: what a seed does, and whether recipes differ by more."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from tandem.observe.compare.judgement import Judgement, Outcome, Value, judge, stretch
from tandem.observe.learning import PAIRED
from tandem.observe.numbers import count
from tandem.observe.report.particulars import flat_rows
from tandem.observe.series.columns import Series
from tandem.observe.statistics import t95

__all__ = ["Repeats", "find_repeats", "judge_recipes", "seed_note"]

FREE = ("name", "seed", "data.folder", "telemetry.", "checkpoint.")
"""Keys of a recipe that do not change what is learnt, and the seed."""
Z95 = 1.959964
JUDGED = ("bleu_best", "valid_loss_best")
"""Questions that are also asked of recipes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Runs of one recipe, each with another seed."""

    runs: tuple[str, ...]
    same_seed: tuple[str, ...]
    """Further runs whose seed is among those: they say nothing new about seeds."""

    @property
    def label(self) -> str:
        """The recipe, named after its first run."""
        return self.runs[0] if len(self.runs) == 1 else f"the recipe of {self.runs[0]}"


def find_repeats(named: Mapping[str, Series]) -> tuple[Repeats, ...]:
    """All runs, grouped by recipe; a run without a recipe stands alone."""
    groups: dict[object, dict[object, list[str]]] = {}
    for name, series in named.items():
        learnt = tuple(row for row in flat_rows(series.recipe) if not row[0].startswith(FREE))
        seeds = groups.setdefault(learnt or name, {})
        seeds.setdefault(series.recipe.get("seed"), []).append(name)
    return tuple(
        Repeats(
            runs=tuple(names[0] for names in seeds.values()),
            same_seed=tuple(name for names in seeds.values() for name in names[1:]),
        )
        for seeds in groups.values()
    )


def seed_note(groups: Sequence[Repeats]) -> str:
    """What can be said of recipes, given how often each was trained."""
    if len(groups) == 1 and len(groups[0].runs) == 1:
        return "These runs have one recipe and one seed: differences of quality are what machines' rounding does."
    if len(groups) == 1:
        return (
            "These runs have one recipe and differ in the seed: differences of quality are what a seed does."
        )
    repeated = sum(len(group.runs) - 1 for group in groups)
    if not repeated:
        return (
            "Each recipe was trained once. Another seed alone changes BLEU and loss too, and one run each cannot tell "
            "by how much: what is said of quality holds for these models, not for their recipes. Train each recipe "
            "with two more seeds and compare all of them."
        )
    return (
        f"Recipes are judged by the spread of runs that differ in their seed alone, known with {count(repeated)} "
        f"degree{'s' * (repeated > 1)} of freedom and taken to be alike for all recipes."
    )


def judge_recipes(groups: Sequence[Repeats], judgements: Sequence[Judgement]) -> Iterator[Judgement]:
    """The same questions asked of recipes, where some were trained several times."""
    freedom = sum(len(group.runs) - 1 for group in groups)
    if len(groups) < 2 or not freedom:
        return
    for judgement in judgements:
        if judgement.question.key in JUDGED and judgement.verdict != "cannot tell":
            yield _judge_recipes(groups, judgement)


def _judge_recipes(groups: Sequence[Repeats], judgement: Judgement) -> Judgement:
    held = {value.run: value.value for value in judgement.values}
    found = {group.label: np.array([held[run] for run in group.runs if run in held]) for group in groups}
    found = {label: values for label, values in found.items() if len(values)}
    freedom = sum(len(values) - 1 for values in found.values())
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in found.values())
    spread = max(sqrt(squares / freedom), _least(judgement)) if freedom else np.nan
    question = replace(
        judgement.question,
        key=f"recipe_{judgement.question.key}",
        is_of_recipes=True,
        title=f"Recipes, over their seeds: {judgement.question.title[0].lower()}{judgement.question.title[1:]}",
    )

    def tell(one: Value, other: Value, chance: float) -> Outcome:
        if not spread > 0:
            return Outcome(
                is_told=None, why="No two seeds of a recipe have this value, or they do not differ at all."
            )
        sizes = [len(found[value.run]) for value in (one, other)]
        reach = t95(freedom) * spread * sqrt(1 / sizes[0] + 1 / sizes[1]) * stretch(chance)
        why = f"Means of {sizes[0]} and {sizes[1]} runs; a seed moves one run by about {spread:.3g}."
        return Outcome(is_told=abs(one.value - other.value) > reach, why=why)

    values = [
        _mean(label, column, half=t95(freedom) * spread / sqrt(len(column)) if freedom else np.nan)
        for label, column in found.items()
    ]
    return judge(question, values, tell)


def _least(judgement: Judgement) -> float:
    """Seeds that hit the same value by luck do not say that seeds do nothing: some noise of one run is left."""
    halves = [value.half for value in judgement.values if np.isfinite(value.half)]
    return PAIRED * float(np.median(halves)) / Z95 if halves else 0.0


def _mean(label: str, column: "np.typing.NDArray[np.float64]", *, half: float) -> Value:
    mean = float(column.mean())
    return Value(run=label, value=mean, low=mean - half, high=mean + half)
