"""Curves drawn with the block characters of a terminal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Chart", "draw_chart", "draw_spark"]

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = " ..::--=#"
LEVELS = len(BLOCKS) - 1
CLIPPED = 0.05
"""Share of the highest values that is cut off: the first steps of a run would flatten all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Rows of blocks, from the top down, and the values at its two edges."""

    rows: list[str]
    low: float
    top: float


def draw_chart(values: Sequence[float], *, rows: int, ascii_only: bool = False) -> Chart:
    """Draw the values, of which there is at least one, as columns of blocks."""
    low = min(values)
    top = sorted(values)[int((len(values) - 1) * (1 - CLIPPED))]
    heights = [_height(value, low=low, top=top, rows=rows) for value in values]
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    floors = [row * LEVELS for row in reversed(range(rows))]
    drawn = ["".join(blocks[min(LEVELS, max(0, height - floor))] for height in heights) for floor in floors]
    return Chart(rows=drawn, low=low, top=top)


def draw_spark(values: Sequence[float], *, width: int, top: float, ascii_only: bool = False) -> str:
    """One row of blocks from 0 to `top`, the newest value last; means where there are more values than columns."""
    columns = min(width, len(values))
    groups = [
        values[at * len(values) // columns : (at + 1) * len(values) // columns] for at in range(columns)
    ]
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    return "".join(_block(group, top, blocks) for group in groups)


def _block(values: Sequence[float], top: float, blocks: str) -> str:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return blocks[0]
    return blocks[_height(max(0.0, sum(known) / len(known)), low=0.0, top=top, rows=1)]


def _height(value: float, *, low: float, top: float, rows: int) -> int:
    """In levels, at least one so that every value is seen."""
    part = min(1.0, (value - low) / (top - low)) if top > low else 0.0
    return 1 + round(part * (rows * LEVELS - 1))
