"""A figure in words, for who cannot see it: each line with its ends and its range."""

import html

from tandem.artefact import JsonValue
from tandem.observe.figures.clock import MARK
from tandem.observe.figures.look import Figure

__all__ = ["describe_figure"]

MOST_LINES = 12


def describe_figure(figure: Figure) -> str:
    """One sentence a line or group of bars, with the numbers that a look at the figure gives."""
    data = figure["data"]
    traces = [trace for trace in data if isinstance(trace, dict)] if isinstance(data, list) else []
    # A band or a strip of marks goes with a line that is told anyway.
    told = [trace for trace in traces if trace.get("hoverinfo") != "skip" and trace.get("meta") != MARK]
    left = len(told) - MOST_LINES
    sentences = [_describe_trace(trace) for trace in told[:MOST_LINES]]
    return " ".join([*filter(None, sentences), *([f"And {left} more lines."] if left > 0 else [])])


def _describe_trace(trace: dict[str, JsonValue]) -> str:
    x, y = trace.get("x"), trace.get("y")
    if not isinstance(x, list) or not isinstance(y, list):
        return ""
    if trace.get("type") == "bar":
        return "; ".join(_bars(trace, x, y))
    points = [(at, value) for at, value in zip(x, y, strict=False) if isinstance(value, int | float)]
    if not points:
        return ""
    heights = [value for _, value in points]
    name = html.unescape(str(trace.get("name", "line")))
    return (
        f"{name}: {_text(heights[0])} at {_text(points[0][0])}, {_text(heights[-1])} at {_text(points[-1][0])}, "
        f"lowest {_text(min(heights))}, highest {_text(max(heights))}."
    )


def _bars(trace: dict[str, JsonValue], x: list[JsonValue], y: list[JsonValue]) -> list[str]:
    texts = trace.get("text")
    shown = texts if isinstance(texts, list) and all(texts) else x
    return [
        f"{html.unescape(str(name))}: {html.unescape(_text(value))}"
        for name, value in zip(y, shown, strict=False)
    ]


def _text(value: JsonValue) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else str(value)
