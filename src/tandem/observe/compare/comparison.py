"""Several runs compared: what differs, which is better in what, and what must be known before believing it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from tandem.errors import TandemError
from tandem.observe.compare.comparable import is_measured
from tandem.observe.compare.differences import Differences, differences
from tandem.observe.compare.judgement import Judgement
from tandem.observe.compare.quality import Pairing, judge_quality, unpaired
from tandem.observe.compare.repeats import Repeats, find_repeats, has_ended, judge_recipes, seed_note
from tandem.observe.compare.speed import judge_speed
from tandem.observe.numbers import count
from tandem.observe.report.summary import headline, notes
from tandem.observe.series.columns import Series

__all__ = ["Comparison", "compare_runs", "name_runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that is to be said about several runs side by side."""

    named: Mapping[str, Series]
    headlines: tuple[str, ...]
    """What each run is, in their order."""
    notes: tuple[str, ...]
    """What a reader must know first."""
    repeats: tuple[Repeats, ...]
    judgements: tuple[Judgement, ...]
    differences: tuple[Differences, ...]


def name_runs(paths: Sequence[Path]) -> dict[str, Path]:
    """Runs under the names of their folders, with a number where two are called the same.

    Raises TandemError where one is there twice: it would count as two runs that agree.
    """
    named: dict[str, Path] = {}
    for path in paths:
        if path.resolve() in {held.resolve() for held in named.values()}:
            raise TandemError(f"{path} is named twice: name each run once.")
        name, number = path.resolve().name or str(path), 1
        while (unique := name if number == 1 else f"{name}-{number}") in named:
            number += 1
        named[unique] = path
    return named


def compare_runs(named: Mapping[str, Series], *, pairing: Pairing = unpaired) -> Comparison:
    """Compare at least two runs; `pairing` compares their translations sentence by sentence."""
    if len(named) < 2:
        raise TandemError("There is one run, and nothing to compare it with: name at least two runs.")
    repeats = find_repeats(named)
    judged = (*judge_quality(named, pairing=pairing), *judge_speed(named))
    return Comparison(
        named=named,
        headlines=tuple(headline(series) for series in named.values()),
        notes=tuple(_notes(named, repeats)),
        repeats=repeats,
        judgements=(*judge_recipes(named, repeats, judged), *judged),
        differences=differences(named),
    )


def _notes(named: Mapping[str, Series], repeats: Sequence[Repeats]) -> Iterator[str]:
    yield seed_note(repeats, named)
    doubled = [name for group in repeats for name in group.same_seed]
    if doubled and len(repeats) > 1:
        yield f"{', '.join(doubled)}: the same recipe and seed as another run, so not counted among the seeds."
    for name, series in named.items():
        if not has_ended(series):
            yield f"{name} has not ended: it is going on, or was killed, and its last values are of now."
        yield from (f"{name}: {note}" for note in notes(series))
        if (step := _broken_since(series)) is not None:
            yield f"{name}: its valid loss is no finite number since step {count(step)}."
    yield from _uneven(named)


def _broken_since(series: Series) -> int | None:
    """The first of the last evaluations that found no finite loss; None where the last one did."""
    since = None
    for each in reversed([each for each in series.evaluations if is_measured(each, "valid_loss")]):
        if isfinite(each.valid_loss):
            return since
        since = each.step
    return since


def _uneven(named: Mapping[str, Series]) -> Iterator[str]:
    """What makes best and last values unfair."""
    ends = {name: int(series.steps.step[-1]) for name, series in named.items() if len(series.steps)}
    if len(set(ends.values())) > 1:
        told = ", ".join(f"{name} {count(step)}" for name, step in ends.items())
        yield f"Runs are of different lengths (last steps: {told}): look at equal steps, tokens and time."
    looks = {name: sum(isfinite(each.bleu) for each in series.evaluations) for name, series in named.items()}
    if min(looks.values()) and max(looks.values()) > 2 * min(looks.values()):
        told = ", ".join(f"{name} {number}" for name, number in looks.items())
        yield f"The best of many scores is high by chance, and runs were scored unequally often ({told})."
