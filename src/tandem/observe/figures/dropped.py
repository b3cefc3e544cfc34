"""The figure of what happened to the pairs that were read: kept, or dropped and why."""

from collections.abc import Sequence

from tandem.artefact import JsonValue
from tandem.observe.figures.look import MUTED, SOURCE, TARGET, Figure, base_layout, label
from tandem.observe.numbers import count, percent, share
from tandem.runlog.card import Dropped

__all__ = ["dropped_figure"]

ROW_HEIGHT = 30
FRAME_HEIGHT = 16
NAMES: dict[str, JsonValue] = {
    "automargin": True,
    "ticks": "outside",
    "ticklen": 6,
    "tickcolor": "rgba(0,0,0,0)",
}
"""An axis of names; unseen ticks keep them off the bars."""


def dropped_figure(*, read: int, kept: int, dropped: Sequence[Dropped]) -> Figure:
    """Kept pairs above, at full scale; each reason below, at a scale of its own because reasons are small."""
    rows = max(1, len(dropped)) + 2
    bottom = 1 - 1.4 / rows
    layout: dict[str, JsonValue] = {
        **base_layout(height=FRAME_HEIGHT + ROW_HEIGHT * rows),
        "showlegend": False,
        "xaxis": {"domain": [0, 1], "range": [0, max(read, 1)], "visible": False},
        "yaxis": {"domain": [bottom, 1], **NAMES},
        "xaxis2": {
            "domain": [0, 1],
            "anchor": "y2",
            "range": [0, 1.15 * max((each.count for each in dropped), default=1)],
            "visible": False,
        },
        "yaxis2": {
            "domain": [0, bottom - 0.6 / rows],
            "anchor": "x2",
            "autorange": "reversed",
            "visible": bool(dropped),
            **NAMES,
        },
        "barmode": "stack",
        "hovermode": "closest",
    }
    return {"data": [*_fate(read, kept), _reasons(read, dropped)], "layout": layout}


def _fate(read: int, kept: int) -> list[JsonValue]:
    parts = (("kept", kept, SOURCE), ("dropped", read - kept, MUTED))
    return [
        {
            "type": "bar",
            "orientation": "h",
            "x": [number],
            "y": ["all read"],
            "marker": {"color": colour},
            "hoverinfo": "text",
            "hovertext": [f"{count(number)} pairs {name} ({percent(share(number, read))})"],
            "text": [f"{count(number)} kept ({percent(share(number, read))})" if name == "kept" else ""],
            "textposition": "inside",
            "insidetextanchor": "start",
            "textangle": 0,
            "insidetextfont": {"color": "#ffffff"},
        }
        for name, number, colour in parts
    ]


def _reasons(read: int, dropped: Sequence[Dropped]) -> JsonValue:
    texts = [f"{count(each.count)} ({percent(share(each.count, read))})" for each in dropped]
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": "x2",
        "yaxis": "y2",
        "x": [each.count for each in dropped],
        "y": [label(each.reason) for each in dropped],
        "marker": {"color": TARGET},
        "text": texts,
        "textposition": "auto",
        "textangle": 0,
        "insidetextfont": {"color": "#ffffff"},
        "cliponaxis": False,
        "hoverinfo": "text",
        "hovertext": [f"{label(each.reason)}: {text}" for each, text in zip(dropped, texts, strict=True)],
    }
