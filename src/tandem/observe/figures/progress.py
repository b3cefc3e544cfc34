"""Figures of training as it went on, step by step: learning rate, gradient norm, speed."""

import numpy as np

from tandem.artefact import JsonValue
from tandem.observe.figures.curve import MOST, Trace, axis, curves, line, spread
from tandem.observe.figures.look import GREEN, PURPLE, SOURCE, TARGET, Figure
from tandem.observe.rates import planned_rates, read_plan
from tandem.observe.series.columns import Series
from tandem.observe.series.thin import thin

__all__ = ["gradient_norm_figure", "learning_rate_figure", "throughput_figure"]

WIDE = 5
"""Times the lowest: a range in which 1, 2 and 5 give two labels at least."""


def learning_rate_figure(series: Series) -> Figure | None:
    """The rate as planned, to the end of the plan, and as it was used."""
    used = series.steps.learning_rate
    traces = []
    if (planned := _planned(series)) is not None:
        traces.append(planned)
    if np.isfinite(used).any():
        traces.append(line("as run", series.steps.step, used, colour=SOURCE))
    return (
        curves(traces, x=axis("step"), y=axis("learning rate", rangemode="tozero", exponentformat="power"))
        if traces
        else None
    )


def _planned(series: Series) -> Trace | None:
    """What the formula gives up to the last planned step; None where no formula is known."""
    plan = read_plan(series)
    done = int(series.steps.step[-1]) if len(series.steps) else 1
    at = np.unique(np.linspace(1, max(done, plan.last if plan else 0), MOST).round())
    rates = planned_rates(series, at)
    return None if rates is None else line("planned", at, rates, colour=TARGET, dash="dash")


def gradient_norm_figure(series: Series) -> Figure | None:
    """How long the gradient was before clipping, on a scale of powers of ten."""
    steps = series.steps
    norm = np.where(steps.gradient_norm > 0, steps.gradient_norm, np.nan)
    if not np.isfinite(norm).any():
        return None
    traces = [line("mean", steps.step, norm, colour=PURPLE)]
    if len(steps) > MOST:
        traces.insert(0, spread("lowest to highest", steps.step, norm, colour=PURPLE))
    wide = float(np.nanmax(norm)) >= WIDE * float(np.nanmin(norm))
    # Labels at 1, 2 and 5 alone: others of a wide range would stand on one another.
    ticks: dict[str, JsonValue] = {"dtick": "D2"} if wide else {}
    return curves(traces, x=axis("step"), y=axis("gradient norm", type="log", tickformat="~g", **ticks))


def throughput_figure(series: Series) -> Figure | None:
    """Real target tokens a second of all ranks, while training; evaluations and checkpoints are not in it."""
    steps = series.steps
    known = (steps.target_tokens > 0) & (steps.duration_s > 0)
    if not known.any():
        return None
    # Tokens and seconds are averaged apart: the mean of ratios would favour short steps.
    at, tokens = thin(
        steps.step[known].astype(np.float64), steps.target_tokens[known].astype(np.float64), MOST
    )
    _, seconds = thin(steps.step[known].astype(np.float64), steps.duration_s[known], MOST)
    trace = line("all ranks together", at, tokens / seconds, colour=GREEN)
    return curves([trace], x=axis("step"), y=axis("target tokens a second", rangemode="tozero"))
