"""The figure of scores: BLEU with its interval, or what another tool called a score."""

import numpy as np

from tandem.artefact import JsonValue
from tandem.observe.figures.curve import MOST, MOST_MARKED, Column, Trace, axis, band, curves, line
from tandem.observe.figures.look import GREEN, PURPLE, SOURCE, TARGET, Figure
from tandem.observe.series.columns import Evaluation, Series

__all__ = ["bleu_figure"]

_NO_BLEU = "Eval_BLEU_Score"
"""OpenSeq2Seq's, of single pieces: nothing is translated for it."""


def bleu_figure(series: Series) -> Figure | None:
    """BLEU over steps; of an imported run its scores, under the names that they have there."""
    scored = [each for each in series.evaluations if np.isfinite(each.bleu)]
    if scored:
        return curves(_bleu(scored), x=axis("step"), y=axis("BLEU, 0 to 100"))
    names = sorted({name for each in series.evaluations for name in each.scores})
    if not names:
        return None
    return curves(_foreign(series, names), x=axis("step"), y=axis(_meaning(names)))


def _bleu(scored: list[Evaluation]) -> list[Trace]:
    at, bleu, low, high = (
        np.array(column, np.float64)
        for column in zip(
            *((each.step, each.bleu, each.bleu_low, each.bleu_high) for each in scored), strict=True
        )
    )
    # An interval belongs to one evaluation: where points have to be thinned out, none is shown.
    known = len(scored) <= MOST and bool(np.isfinite(high - low).any())
    # A band would also stand where evaluations between have none.
    if known and len(scored) > MOST_MARKED and bool(np.isfinite(high - low).all()):
        interval = band("95 % interval", at, low, high, colour=SOURCE)
        return [interval, line("BLEU on valid", at, bleu, colour=SOURCE, markers=True)]
    name = "BLEU on valid, 95 % interval" if known else "BLEU on valid"
    trace = line(name, at, bleu, colour=SOURCE, markers=True)
    if known:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": _reach(high - bleu),
            "arrayminus": _reach(bleu - low),
            "color": SOURCE,
        }
    return [trace]


def _reach(lengths: Column) -> list[JsonValue]:
    """Without a length plotly draws no bar."""
    return [round(length, 4) if np.isfinite(length) else None for length in lengths.tolist()]


def _meaning(names: list[str]) -> str:
    if names == [_NO_BLEU]:
        return "score of another tool, no BLEU"
    doubt = f"; {_NO_BLEU} is no BLEU" if _NO_BLEU in names else ""
    return f"score, as its tool computes it{doubt}"


def _foreign(series: Series, names: list[str]) -> list[Trace]:
    colours = (TARGET, GREEN, PURPLE, SOURCE)
    traces = []
    for name, colour in zip(names, colours, strict=False):
        found = [(each.step, each.scores[name]) for each in series.evaluations if name in each.scores]
        steps, scores = (np.array(column, np.float64) for column in zip(*found, strict=True))
        traces.append(line(name, steps, scores, colour=colour, markers=True))
    return traces
