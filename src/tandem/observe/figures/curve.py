"""Curves: the lines, bands and axes that most figures are made of."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.artefact import JsonValue
from tandem.observe.figures.look import Figure, base_layout, label
from tandem.observe.series.thin import envelope, thin

__all__ = [
    "MOST",
    "MOST_MARKED",
    "Column",
    "Trace",
    "axis",
    "band",
    "curves",
    "line",
    "mean_of_ranks",
    "spread",
    "values",
]

Trace: TypeAlias = dict[str, JsonValue]
Column: TypeAlias = NDArray[Any]

MOST = 600
"""Points of a line: a screen shows no more."""
MOST_MARKED = 40
"""Points of a line that are marked one by one: more would touch each other."""
HEIGHT = 300
EXACT_POWER = 22
"""Powers of ten up to this are doubles without rounding."""


def values(column: Column, digits: int = 5) -> list[JsonValue]:
    """Numbers for plotly with so many digits that count; what is not a number leaves a gap."""
    numbers = np.asarray(column, np.float64)
    known = np.isfinite(numbers)
    rest = np.where(known & (numbers != 0), numbers, 1.0)
    power = digits - 1 - np.floor(np.log10(np.abs(rest)))
    is_far = np.abs(power) > EXACT_POWER
    rest, power = np.where(is_far, 1.0, rest), np.where(is_far, 0.0, power)
    # A whole number over or times a power of ten is the double next to that decimal: it is written in few digits.
    scale = 10.0 ** np.abs(power)
    rounded = np.where(power >= 0, np.rint(rest * scale) / scale, np.rint(rest / scale) * scale)
    told: list[JsonValue] = np.where(numbers == 0, 0.0, rounded).tolist()
    for place in np.flatnonzero(is_far).tolist():
        told[place] = float(f"{numbers[place]:.{digits}g}")
    for place in np.flatnonzero(~known).tolist():
        told[place] = None
    return told


def line(
    name: str, x: Column, y: Column, *, colour: str, dash: str = "solid", markers: bool = False
) -> Trace:
    """A line, thinned to what a screen shows; `markers` for points that were measured one by one, if they are few."""
    x, y = thin(np.asarray(x, np.float64), np.asarray(y, np.float64), MOST)
    points = np.count_nonzero(np.isfinite(y))
    trace: Trace = {
        "type": "scatter",
        "mode": "lines+markers" if points == 1 or (markers and points <= MOST_MARKED) else "lines",
        "name": label(name),
        "x": values(x, 7),
        "y": values(y),
        "line": {"color": colour, "width": 2, "dash": dash},
        "connectgaps": markers,
    }
    if markers or points == 1:
        trace["marker"] = {"color": colour, "size": 7}
    return trace


def band(name: str, x: Column, low: Column, high: Column, *, colour: str) -> Trace:
    """The room between two curves, as one closed shape; points where either is unknown are left out."""
    known = np.isfinite(low) & np.isfinite(high)
    around = np.concatenate((x[known], x[known][::-1]))
    edge = np.concatenate((high[known], low[known][::-1]))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(name),
        "x": values(around, 7),
        "y": values(edge),
        "fill": "toself",
        "fillcolor": f"{colour}2e",
        "line": {"color": colour, "width": 0.5},
        "hoverinfo": "skip",
    }


def spread(name: str, x: Column, y: Column, *, colour: str) -> Trace:
    """From the lowest to the highest of the points that one point of the thinned line stands for."""
    at, low, high = envelope(np.asarray(x, np.float64), np.asarray(y, np.float64), MOST)
    return band(name, at, low, high, colour=colour)


def axis(title: str, **more: JsonValue) -> dict[str, JsonValue]:
    """An axis with its title, which has the unit."""
    return {"title": {"text": label(title)}, "automargin": True, **more}


def curves(
    traces: Sequence[Trace], *, x: dict[str, JsonValue], y: dict[str, JsonValue], height: int = HEIGHT
) -> Figure:
    """Lines over one pair of axes, with a legend above."""
    return {
        "data": list(traces),
        "layout": {
            **base_layout(height=height),
            "xaxis": x,
            "yaxis": y,
            "showlegend": True,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "hovermode": "closest",
        },
    }


def mean_of_ranks(table: Column) -> NDArray[np.float64]:
    """The mean of each column over the ranks that are known; nan where none is."""
    known = np.isfinite(table)
    sums = np.where(known, table, 0).sum(axis=0, dtype=np.float64)
    counted = known.sum(axis=0)
    return np.where(counted > 0, sums / np.maximum(counted, 1), np.nan)
