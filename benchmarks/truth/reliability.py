"""The share of right answers at each stated confidence, with its interval, as numbers and as a figure."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

__all__ = ["draw_reliability", "wilson"]

_Z = 1.96
_CONFIDENCES = ("low", "medium", "high")
_LEFT, _ROW, _WIDTH, _TOP = 150, 20, 420, 54
_SPREAD = 5


def wilson(right: int, count: int) -> tuple[float, float]:
    """95 % interval of a share."""
    if not count:
        return 0.0, 1.0
    share, square = right / count, _Z**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * sqrt(share * (1 - share) / count + square / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def draw_reliability(rows: Sequence[dict[str, Any]]) -> str:
    """An SVG: for each question and confidence the share of right answers with its interval."""
    height = _TOP + len(rows) * (_ROW + 3 * _SPREAD) + 30
    width, font = _LEFT + _WIDTH + 40, 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {font}>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="16">Share of answers that are right, with 95 % intervals</text>',
        *_legend(),
        *_axis(height),
    ]
    for number, row in enumerate(rows):
        top = _TOP + number * (_ROW + 3 * _SPREAD) + 14
        parts.append(f'<text x="{_LEFT - 10}" y="{top + 14}" text-anchor="end">{row["question"]}</text>')
        for line, confidence in enumerate(_CONFIDENCES):
            parts += _bar(row[confidence], confidence, y=top + line * 10)
    return "\n".join([*parts, "</svg>"]) + "\n"


_COLOURS = {"low": "#b58900", "medium": "#268bd2", "high": "#2f4b7c"}


def _x(share: float) -> float:
    """From a half to one: nothing worse is worth a figure."""
    return _LEFT + _WIDTH * max(share - 0.5, 0.0) * 2


def _legend() -> list[str]:
    return [
        f'<circle cx="{_LEFT + 5 + 110 * number}" cy="32" r="4" fill="{_COLOURS[name]}"/>'
        f'<text x="{_LEFT + 14 + 110 * number}" y="36">{name} confidence</text>'
        for number, name in enumerate(_CONFIDENCES)
    ]


def _axis(height: int) -> list[str]:
    parts = []
    for tenth in range(5, 11):
        x = _x(tenth / 10)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{height - 24}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{tenth * 10} %</text>')
    return parts


def _bar(counted: dict[str, Any], confidence: str, *, y: int) -> list[str]:
    if not counted["answers"]:
        return []
    colour, share = _COLOURS[confidence], counted["right"] / counted["answers"]
    title = f"<title>{counted['right']} of {counted['answers']}</title>"
    low, high = _x(counted["low"]), _x(counted["high"])
    return [
        f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke="{colour}" stroke-width="2"/>',
        f'<circle cx="{_x(share):.1f}" cy="{y}" r="3.5" fill="{colour}">{title}</circle>',
    ]
