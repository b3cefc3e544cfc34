"""What another tool calls a score: told as what it is, and never as BLEU."""

from tandem.observe.finding import Evidence
from tandem.observe.numbers import count
from tandem.observe.series.columns import Series

__all__ = ["doubt_scores", "score_evidence"]

TEACHER_FORCED = "Eval_BLEU_Score"
MEANING = (
    "It compares, at each place, the likeliest piece after the reference's own pieces before it: nothing is translated "
    "for it, and a model that repeats the piece it is given scores high"
)
UNKNOWN = "How its tool computes it, the files do not say"


def doubt_scores(series: Series) -> str:
    """A sentence for each score that was imported, with a blank before it; empty where there is none."""
    return "".join(_sentence(name, points) for name, points in _imported(series).items())


def score_evidence(series: Series) -> tuple[Evidence, ...]:
    """The last value of each score that was imported, with what it means."""
    return tuple(
        Evidence(
            name=f"{name}, as imported",
            value=points[-1][1],
            definition=f"At step {count(points[-1][0])}. {_meaning(name)}. It is not used for this answer.",
            figure="bleu",
        )
        for name, points in _imported(series).items()
    )


def _imported(series: Series) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for each in series.evaluations:
        for name, value in each.scores.items():
            found.setdefault(name, []).append((each.step, value))
    return found


def _sentence(name: str, points: list[tuple[int, float]]) -> str:
    if name != TEACHER_FORCED:
        return f" Its {name} is not used: {UNKNOWN[0].lower()}{UNKNOWN[1:]}."
    first, last = points[0], points[-1]
    shown = [f"{first[1]:.4g} before any training"] if first[0] == 0 else []
    if last[0] > 0:
        shown.append(f"{last[1]:.4g} at step {count(last[0])}")
    return f" Its {name} ({', '.join(shown)}) is no BLEU of translations. {MEANING}."


def _meaning(name: str) -> str:
    return MEANING if name == TEACHER_FORCED else UNKNOWN
