"""Curves of several runs in a terminal: a row of blocks each, over one axis and on one scale."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from tandem.observe.compare.overlay import Points, Quantity, curve_points, short_name
from tandem.observe.compare.place import AGAINST, Against
from tandem.observe.numbers import count, duration, short_count
from tandem.observe.series.columns import Series
from tandem.observe.visible import visible
from tandem.observe.watch.chart import draw_spark

__all__ = ["curve_lines"]

Numbers = NDArray[np.float64]

INDENT = "    "
GAP = "  "
MOST_CELLS = 60
FEWEST_CELLS = 8
DRAWN_SHARE = 0.95
"""Of a training curve, what is drawn to scale: its first steps would flatten all others."""
TITLES: Mapping[Quantity, tuple[str, int]] = {
    "bleu": ("BLEU on the valid text", 1),
    "valid_loss": ("Loss on the valid text", 3),
    "loss": ("Training loss", 3),
}
"""With the decimals of their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paper:
    """What all rows are drawn on."""

    width: int
    ascii_only: bool


def curve_lines(named: Mapping[str, Series], *, width: int, ascii_only: bool) -> Iterator[Text]:
    """BLEU and valid loss against steps, tokens and time; training loss where no run has either."""
    paper = _Paper(width=width, ascii_only=ascii_only)
    scored = [line for quantity in ("bleu", "valid_loss") for line in _of_quantity(named, quantity, paper)]
    yield from scored or _of_quantity(named, "loss", paper)


def _of_quantity(named: Mapping[str, Series], quantity: Quantity, paper: _Paper) -> Iterator[Text]:
    drawn = {against: _held(named, quantity, against) for against in AGAINST}
    if any(drawn.values()):
        yield Text(TITLES[quantity][0], "bold")
    for against, held in drawn.items():
        if held:
            yield Text(INDENT + _axis(against, _end(held)), "dim")
            yield from _rows(held, quantity, paper)


def _held(named: Mapping[str, Series], quantity: Quantity, against: Against) -> dict[str, Points]:
    """The curves of those that have one."""
    found = {name: curve_points(series, quantity, against) for name, series in named.items()}
    held = {name: _placed(points) for name, points in found.items() if points is not None}
    return {name: points for name, points in held.items() if len(points.x)}


def _placed(points: Points) -> Points:
    known = np.isfinite(points.x)
    return replace(points, x=points.x[known], y=points.y[known], reach=None)


def _end(held: Mapping[str, Points]) -> float:
    return max(float(points.x[-1]) for points in held.values())


def _axis(against: Against, end: float) -> str:
    match against:
        case "steps":
            return f"against steps, 0 to {count(round(end))}"
        case "tokens":
            return f"against target tokens, 0 to {short_count(round(end))}"
        case "time":
            return f"against training time, 0 to {duration(end)}"


def _rows(held: Mapping[str, Points], quantity: Quantity, paper: _Paper) -> Iterator[Text]:
    values = np.concatenate([points.y for points in held.values()])
    low, top = values.min(), np.quantile(values, DRAWN_SHARE) if quantity == "loss" else values.max()
    digits = TITLES[quantity][1]
    places = max(len(f"{value:.{digits}f}") for value in (values.min(), values.max()))
    names = {name: Text(visible(short_name(name))) for name in held}
    widest = max(name.cell_len for name in names.values())
    room = paper.width - len(INDENT) - widest - len(GAP) - 2 * (places + 1)
    cells = min(MOST_CELLS, max(FEWEST_CELLS, room))
    for name, points in held.items():
        row = _cells(points, end=_end(held), cells=cells)
        spark = draw_spark(
            (row - low).tolist(), width=cells, top=float(top - low), ascii_only=paper.ascii_only
        )
        begin, last = (f"{value:>{places}.{digits}f}" for value in _ends(points, row))
        names[name].pad_right(widest - names[name].cell_len)
        yield Text.assemble(INDENT, names[name], f"{GAP}{begin} ", (spark, "blue"), f" {last}")


def _cells(points: Points, *, end: float, cells: int) -> Numbers:
    """Means of what falls into a cell, a straight line where nothing does, nan where the run has not been."""
    place = np.minimum(points.x / (end or 1.0) * cells, cells - 1).astype(np.int64)
    counts = np.bincount(place, minlength=cells)
    filled = np.flatnonzero(counts)
    means = np.bincount(place, weights=points.y, minlength=cells)[filled] / counts[filled]
    return np.interp(np.arange(cells), filled, means, left=np.nan, right=np.nan)


def _ends(points: Points, row: Numbers) -> tuple[float, float]:
    """The first value and the last; of steps, which scatter, means."""
    shown = points.y if points.is_measured else row[np.isfinite(row)]
    return float(shown[0]), float(shown[-1])
