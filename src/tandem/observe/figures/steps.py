"""Figures of the step: how long it takes, and what its time goes into."""

import numpy as np

from tandem.observe.figures.clock import clock_of, marks
from tandem.observe.figures.curve import MOST, Trace, axis, curves, line, mean_of_ranks, spread, values
from tandem.observe.figures.look import BROWN, GREEN, MUTED, SKY, SOURCE, TARGET, Figure, label
from tandem.observe.series.columns import PHASES, Series
from tandem.observe.series.thin import thin

__all__ = ["anatomy_figure", "step_times_figure"]

PHASE_LOOKS = {
    "data": ("waiting for data", BROWN, "."),
    "forward": ("forward", SKY, ""),
    "backward": ("backward", SOURCE, ""),
    "exchange": ("waiting for gradients", TARGET, "/"),
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
    traces = [
        trace
        for name in PHASES
        if (trace := _phase(name, series, at=clock.at(series.steps.time_s))) is not None
    ]
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


def _phase(name: str, series: Series, *, at: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Trace | None:
    spent = series.ranks.phases.get(name)
    if spent is None or not np.isfinite(spent).any() or not np.nanmax(spent) > 0:
        return None
    x, y = thin(at, mean_of_ranks(spent), MOST)
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
