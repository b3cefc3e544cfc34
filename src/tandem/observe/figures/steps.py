"""Figures of the step: how long it takes, and what its time goes into."""

import numpy as np

from tandem.observe.figures.clock import clock_of, marks
from tandem.observe.figures.curve import MOST, Trace, axis, curves, line, mean_of_ranks, spread, values
from tandem.observe.figures.look import BROWN, GREEN, MUTED, PURPLE, SKY, SOURCE, TARGET, Figure, label
from tandem.observe.series.columns import Numbers, Series
from tandem.observe.series.thin import thin
from tandem.observe.stretches import stretches_of

__all__ = ["anatomy_figure", "step_times_figure"]

PHASE_LOOKS = {
    "data": ("waiting for data", BROWN, "."),
    "forward": ("forward", SKY, ""),
    "backward": ("backward", SOURCE, ""),
    "network": ("waiting for the network", TARGET, "/"),
    "straggler": ("waiting for the slowest rank", PURPLE, "\\"),
    "exchange": ("waiting for gradients, not all ranks heard", TARGET, "+"),
    "optimizer": ("optimiser", GREEN, ""),
    "other": ("other", MUTED, "x"),
}
HEIGHT = 380
STRIP = 0.9
"""Marks are above this height."""


def step_times_figure(series: Series) -> Figure | None:
    """Duration of the steps over the run; where points stand for many steps, also their range."""
    steps = series.steps
    if not np.isfinite(steps.duration_s).any():
        return None
    imported = series.imported
    mean = imported is not None and imported.step_kind == "mean"
    name = "mean since the point before" if mean else "duration of a step"
    traces = [line(name, steps.step, steps.duration_s, colour=SOURCE)]
    if len(steps) > MOST:
        traces.insert(0, spread("shortest to longest", steps.step, steps.duration_s, colour=SOURCE))
    return curves(traces, x=axis("step"), y=axis("seconds a step", rangemode="tozero"))


def anatomy_figure(series: Series) -> Figure | None:
    """Mean seconds of each phase over all ranks, stacked, over the time of the run."""
    clock = clock_of(series)
    at, parts = clock.at(series.steps.time_s), _parts(series)
    traces = [_area(name, at, parts[name]) for name in PHASE_LOOKS if np.nanmax(parts.get(name, [0])) > 0]
    if not traces:
        return None
    seconds = axis("seconds a step", rangemode="tozero", domain=[0, STRIP])
    figure = curves(traces, x=clock.axis(), y=seconds, height=HEIGHT)
    # The caption says what the marks are: with them, the legend would be too long for a phone.
    happened: list[Trace] = [{**mark, "showlegend": False} for mark in marks(series, yaxis="y2")]
    layout = figure["layout"]
    if happened and isinstance(layout, dict):
        figure["data"] = [*traces, *happened]
        layout["yaxis2"] = {"domain": [STRIP + 0.02, 1], "range": [0, 4], "visible": False, "anchor": "x"}
    return figure


def _parts(series: Series) -> dict[str, Numbers]:
    """Mean seconds of each step over its ranks by what they went into, with the wait for gradients split.

    The last rank to arrive waits for the network alone, as long as all of them were heard; a lone rank for nobody.
    """
    parts = {
        name: mean_of_ranks(spent) for name, spent in series.ranks.phases.items() if np.isfinite(spent).any()
    }
    wait = parts.pop("exchange", None)
    if wait is None:
        return parts
    waits = series.ranks.phases["exchange"]
    least = np.fmin.reduce(waits, axis=0).astype(np.float64)
    world = stretches_of(series).ranks
    alone = world == 1
    heard = (np.isfinite(waits).sum(axis=0) >= world) & ~alone
    return {
        **parts,
        "network": np.where(heard, least, 0.0),
        "straggler": np.where(heard, np.maximum(0.0, wait - least), 0.0),
        "exchange": np.where(heard | alone, 0.0, wait),
        "other": parts.get("other", np.zeros(len(wait))) + np.where(alone, wait, 0.0),
    }


def _area(name: str, at: Numbers, seconds: Numbers) -> Trace:
    x, y = thin(at, seconds, MOST)
    shown, colour, pattern = PHASE_LOOKS[name]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(shown),
        "x": values(x, 7),
        "y": values(np.nan_to_num(y)),
        "stackgroup": "step",
        "line": {"color": colour, "width": 0.5},
        "fillcolor": colour,
        # A pattern tells what is waited for apart from work, also in print.
        "fillpattern": {
            "shape": pattern,
            "bgcolor": colour,
            "fgcolor": "rgba(255,255,255,0.6)",
            "size": 7,
            "solidity": 0.2,
        },
    }
