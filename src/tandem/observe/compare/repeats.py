"""Runs of one recipe that differ in their seed alone: what a seed does, and whether recipes differ by more."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from tandem.observe.compare.differences import surroundings
from tandem.observe.compare.judgement import Judgement, Outcome, Question, Value, judge, stretch, unjudged
from tandem.observe.learning import PAIRED
from tandem.observe.numbers import count
from tandem.observe.report.particulars import flat_rows
from tandem.observe.series.columns import Series
from tandem.observe.statistics import t95

__all__ = ["Repeats", "find_repeats", "has_ended", "judge_recipes", "seed_note"]

FREE = ("name", "seed", "data.folder", "telemetry.", "checkpoint.")
"""Keys of a recipe that do not change what is learnt, and the seed."""
Z95 = 1.959964
JUDGED = ("bleu_best", "valid_loss_best", "bleu_equal_steps", "valid_loss_equal_steps")
"""Questions that are also asked of recipes."""
BEST = "_best"
ALIKE = 0.02
"""Share by which lengths of runs may differ that are taken for equally long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Runs of one recipe on the same data, each with another seed."""

    runs: tuple[str, ...]
    same_seed: tuple[str, ...]
    """Further runs whose seed is among those: they say nothing new about seeds."""

    @property
    def label(self) -> str:
        """The recipe, named after its first run."""
        return self.runs[0] if len(self.runs) == 1 else f"the recipe of {self.runs[0]}"


def find_repeats(named: Mapping[str, Series]) -> tuple[Repeats, ...]:
    """All runs, grouped by recipe and data; a run without a recipe stands alone."""
    groups: dict[object, dict[object, list[str]]] = {}
    for name, series in named.items():
        learnt = tuple(sorted(row for row in flat_rows(series.recipe) if not row[0].startswith(FREE)))
        seeds = groups.setdefault((learnt, _texts(series)) if learnt else name, {})
        seeds.setdefault(series.recipe.get("seed"), []).append(name)
    return tuple(
        Repeats(
            runs=tuple(names[0] for names in seeds.values()),
            same_seed=tuple(name for names in seeds.values() for name in names[1:]),
        )
        for seeds in groups.values()
    )


def _texts(series: Series) -> object:
    """Which texts a run read, but for what follows from recipe and seed; None where that is not known."""
    card = series.card
    if card is None:
        return None
    corpora = [(each.name, each.lines, tuple(file.sha256 for file in each.files)) for each in card.corpora]
    held_out = [(each.name, each.pairs) for each in card.held_out]
    return (card.languages.source, card.languages.target, tuple(corpora), tuple(held_out))


def seed_note(groups: Sequence[Repeats], named: Mapping[str, Series]) -> str:
    """What can be said of recipes, given how often each was trained."""
    if len(groups) == 1:
        return _note_of_one(groups[0], named)
    repeated = sum(len(group.runs) - 1 for group in groups)
    if not repeated:
        return (
            "Each recipe was trained once on its data. Another seed alone changes BLEU and loss too, and one run each "
            "cannot tell by how much: what is said of quality holds for these models, not for their recipes. Train "
            "each recipe with two more seeds and compare all of them."
        )
    return (
        f"Recipes are judged by the spread of runs that differ in their seed alone, known with {count(repeated)} "
        f"degree{'s' * (repeated > 1)} of freedom and taken to be alike for all recipes."
    )


def _note_of_one(group: Repeats, named: Mapping[str, Series]) -> str:
    """What differences between runs of one recipe come from."""
    other = surroundings(named)
    if len(group.runs) > 1:
        # What a seed draws, as a built-in corpus, is the seed's doing.
        of_seed = surroundings({name: replace(each, card=None) for name, each in named.items()})
        beside = (
            f" and their surroundings, which differ too ({', '.join(of_seed)}), do" if of_seed else " does"
        )
        return (
            "These runs have one recipe and differ in the seed: differences of quality are what a seed"
            f"{beside}."
        )
    start = "These runs have one recipe and one seed"
    if other:
        return (
            f"{start}, but differ in {', '.join(other)}: differences of quality may come from there, not only from "
            "machines' rounding."
        )
    if any(series.card is None for series in named.values()):
        return f"{start}; whether they read the same data is not in their logs."
    return (
        f"{start}, and the same data and versions: differences of quality are what machines' rounding does."
    )


def judge_recipes(
    named: Mapping[str, Series], groups: Sequence[Repeats], judgements: Sequence[Judgement]
) -> Iterator[Judgement]:
    """The same questions asked of recipes, where some were trained several times."""
    freedom = sum(len(group.runs) - 1 for group in groups)
    if len(groups) < 2 or not freedom:
        return
    uneven = _uneven(named)
    for judgement in judgements:
        if judgement.question.key not in JUDGED or judgement.verdict == "cannot tell":
            continue
        found = _columns(groups, judgement)
        if len(found) < 2:
            continue
        question = _of_recipes(judgement.question)
        broken = [value.run for value in judgement.values if value.is_broken]
        if uneven and question.key.endswith(BEST):
            yield unjudged(question, f"{uneven}, and the longer a run the better its best: see equal steps.")
        elif broken:
            yield unjudged(
                question, f"{', '.join(broken)}: no finite value, so a mean over seeds says nothing."
            )
        else:
            yield _judge_recipes(question, judgement, found)


def _uneven(named: Mapping[str, Series]) -> str:
    """Why best values of the runs say nothing of their recipes, as part of a sentence; empty where they do."""
    going = [name for name, series in named.items() if not has_ended(series)]
    if going:
        return f"{', '.join(going)} {'have' if len(going) > 1 else 'has'} not ended"
    ends = [int(series.steps.step[-1]) for series in named.values() if len(series.steps)]
    if ends and min(ends) < (1 - ALIKE) * max(ends):
        return f"runs are of different lengths, {count(min(ends))} to {count(max(ends))} steps"
    return ""


def has_ended(series: Series) -> bool:
    """Whether a run's log says so; an imported one is over."""
    return series.imported is not None or bool(series.ended) or series.is_closed


def _columns(groups: Sequence[Repeats], judgement: Judgement) -> dict[str, "np.typing.NDArray[np.float64]"]:
    """The values of each recipe's runs, of those that can be compared."""
    held = {value.run: value.value for value in judgement.values if value.run not in judgement.left_out}
    found = {group.label: np.array([held[run] for run in group.runs if run in held]) for group in groups}
    return {label: values for label, values in found.items() if len(values)}


def _of_recipes(question: Question) -> Question:
    title = (
        question.title
        if question.title.startswith("BLEU")
        else question.title[0].lower() + question.title[1:]
    )
    return replace(
        question,
        key=f"recipe_{question.key}",
        is_of_recipes=True,
        title=f"Recipes, over their seeds: {title}",
    )


def _judge_recipes(
    question: Question, judgement: Judgement, found: Mapping[str, "np.typing.NDArray[np.float64]"]
) -> Judgement:
    freedom = sum(len(values) - 1 for values in found.values())
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in found.values())
    spread = max(sqrt(squares / freedom), _least(judgement)) if freedom else np.nan

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
