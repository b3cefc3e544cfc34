"""Sentence lengths as two strips of blocks over one axis, for the terminal."""

from collections.abc import Sequence
from math import ceil

from rich.text import Text

from tandem.observe.histogram import axis_end, share_by_length
from tandem.observe.numbers import percent
from tandem.observe.visible import visible
from tandem.runlog.card import Languages, SideHistograms

__all__ = ["SOURCE_STYLE", "TARGET_STYLE", "length_strips"]

SOURCE_STYLE = "cyan"
TARGET_STYLE = "yellow"
BLOCKS = " ▁▂▃▄▅▆▇█"
ROWS = 3
TICK_GAP = 10


def length_strips(lengths: SideHistograms, languages: Languages, *, width: int) -> list[Text]:
    """Lines of the plot; both sides have the same scale in both directions."""
    labels = [visible(language)[:6] for language in (languages.source, languages.target)]
    gutter = max(map(len, labels)) + 1
    room = max(TICK_GAP, width - gutter)
    end = axis_end(lengths.source, lengths.target)
    per_bar = ceil(end / room)
    bars = ceil(end / per_bar)
    bar_width = max(1, room // bars)
    sides = [_summed(share_by_length(side)[:end], per_bar) for side in (lengths.source, lengths.target)]
    peak = max((max(side, default=0.0) for side in sides), default=0.0)
    lines = []
    for name, side, style in zip(labels, sides, (SOURCE_STYLE, TARGET_STYLE), strict=True):
        strip = _strip(side, peak, bar_width)
        names = [""] * (ROWS - 1) + [name]
        lines += [
            Text(f"{mark:<{gutter}}").append(row, style) for mark, row in zip(names, strip, strict=True)
        ]
    lines.append(Text(" " * gutter + _axis(bars, per_bar, bar_width), "dim"))
    what = "one length" if per_bar == 1 else f"{per_bar} lengths"
    lines.append(
        Text(f"Pieces in a sentence; one bar is {what}, the tallest {percent(peak)} of its side.", "dim")
    )
    return lines


def _summed(shares: Sequence[float], per_bar: int) -> list[float]:
    return [sum(shares[start : start + per_bar]) for start in range(0, len(shares), per_bar)]


def _strip(shares: Sequence[float], peak: float, bar_width: int) -> list[str]:
    """Rows from the top; whatever is not nothing is seen."""
    full = len(BLOCKS) - 1
    levels = [ceil(share / peak * ROWS * full - 1e-9) if peak else 0 for share in shares]
    return [
        "".join(BLOCKS[min(full, max(0, level - row * full))] * bar_width for level in levels)
        for row in reversed(range(ROWS))
    ]


def _axis(bars: int, per_bar: int, bar_width: int) -> str:
    """The first length of a bar, written under its left end."""
    marks = ""
    every = ceil(TICK_GAP / bar_width)
    for bar in range(0, bars, every):
        marks = f"{marks:<{bar * bar_width}}{bar * per_bar + 1}"
    return marks
