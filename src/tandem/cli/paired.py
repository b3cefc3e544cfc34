"""Kept translations of two runs compared sentence by sentence, where both can be shown to be of the same text."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.observe.compare.quality import Paired, Pairing
    from tandem.observe.series.columns import Evaluation, Series
    from tandem.translate.measure import Rules

__all__ = ["pairing_of"]

VALID = "valid"
CLOSE = 0.01
"""BLEU points within which a score that is computed again is the one in the log."""
HYPOTHESES = "hypotheses"


def pairing_of(named: "Mapping[str, tuple[Path, Series]]") -> "Pairing":
    """Compares runs by translations that their folders keep, against references that either of them has.

    Translations and references belong together where they give the BLEU that was logged.
    """
    from tandem.observe.compare.quality import Paired
    from tandem.translate.compare import compare

    references = cache(lambda run: _read_references(*named[run]))

    @cache
    def pair(one: str, step: int, other: str, other_step: int) -> "Paired | str":
        found = [_evaluation(named[run][1], at) for run, at in ((one, step), (other, other_step))]
        rules = _rules(found)
        if isinstance(rules, str):
            return rules
        texts = [_read_kept(named[run][0], each) for run, each in zip((one, other), found, strict=True)]
        if None in texts:
            return "The translations of both were not kept, or are not here."
        first, second = (text for text in texts if text is not None)
        for text in filter(None, (references(one), references(other))):
            if len(first) != len(second) or len(first) > len(text):
                continue
            compared = compare(first, second, [text[: len(first)]], rules=rules)
            logged = zip((compared.first, compared.second), found, strict=True)
            if compared.chance is not None and all(abs(bleu - each.bleu) < CLOSE for bleu, each in logged):
                return Paired(chance=compared.chance, sentences=len(first))
        return "No references were found that give the BLEU of both logs to the kept translations."

    return pair


def _evaluation(series: "Series", step: int) -> "Evaluation":
    return next(each for each in series.evaluations if each.step == step and isfinite(each.bleu))


def _rules(found: "Sequence[Evaluation]") -> "Rules | str":
    """How sacreBLEU counted, from its signature."""
    from tandem.translate.measure import Rules

    told = [dict(part.partition(":")[::2] for part in each.bleu_signature.split("|")) for each in found]
    ways = {(each.get("tok", ""), each.get("case", "")) for each in told}
    tokenize, case = next(iter(ways))
    if len(ways) > 1 or not tokenize:
        return "BLEU was counted in different ways, or it is not told how."
    try:
        return Rules(tokenize=tokenize, lowercase=case == "lc")
    except TandemError:
        return f"sacreBLEU does not know the tokenizer {tokenize} here."


def _read_kept(run: Path, each: "Evaluation") -> list[str] | None:
    """The translations of an evaluation; None where they are not in the run's folder of them."""
    from tandem.artefact import is_name
    from tandem.files import read_bounded

    if not is_name(each.hypotheses) or Path(each.hypotheses).parts[0] != HYPOTHESES:
        return None
    try:
        return read_bounded(run / each.hypotheses, below=run).decode().split("\n")[:-1]
    except (OSError, UnicodeDecodeError):
        return None


def _read_references(run: Path, series: "Series") -> list[str] | None:
    """The valid text in the target language, as the run's prepared data has it."""
    from tandem.data.corpus.held_out import open_held_out

    data = series.recipe.get("data")
    told = data.get("folder") if isinstance(data, Mapping) else None
    folder = str(told or Path("prepared") / str(series.recipe.get("name")))
    # As a run names it, seen from the run or from where it was started; demos keep theirs inside.
    for place in dict.fromkeys((run / folder, run / "data", Path(folder))):
        try:
            return list(open_held_out(place / "held-out" / VALID / "text").target)
        except (OSError, TandemError, UnicodeDecodeError):
            continue
    return None
