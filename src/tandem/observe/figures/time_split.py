"""The figure of where the wall time of a run went."""

from math import isfinite

from tandem.artefact import JsonValue
from tandem.observe.account import settle
from tandem.observe.exchange import measure_exchange
from tandem.observe.figures.clock import clock_of
from tandem.observe.figures.curve import axis
from tandem.observe.figures.look import BROWN, GREEN, MUTED, PURPLE, SKY, SOURCE, TARGET, Figure, base_layout
from tandem.observe.numbers import duration, percent, share
from tandem.observe.series.columns import Series
from tandem.observe.spent import spend

__all__ = ["time_split_figure"]

COLOURS = {
    "training": SOURCE,
    "training: computing": SOURCE,
    "training: optimiser": SOURCE,
    "training: exchange": TARGET,
    "training: slowest rank": PURPLE,
    "training: data": BROWN,
    "evaluation": GREEN,
    "waiting for checkpoints": PURPLE,
    "data preparation": SKY,
    "start-up and compiling": BROWN,
    "lost to restarts": TARGET,
}
"""What is not named here is grey."""
ROW_HEIGHT = 30
FRAME_HEIGHT = 60


def time_split_figure(series: Series) -> Figure | None:
    """A bar for each thing that took time."""
    if not len(series.steps) or series.end_s <= 0 or not _has_times(series):
        return None
    clock = clock_of(series)
    parts = [part for part in _parts(series) if isfinite(part[1]) and part[1] > 0]
    if not parts:
        return None
    lengths = [seconds / clock.seconds for _, seconds, _ in parts]
    bars: dict[str, JsonValue] = {
        "type": "bar",
        "orientation": "h",
        "x": [float(f"{length:.6g}") for length in lengths],
        "y": [name for name, _, _ in parts],
        "marker": {"color": [colour for _, _, colour in parts]},
        "text": [duration(seconds) for _, seconds, _ in parts],
        "textposition": "outside",
        "cliponaxis": False,
        "hoverinfo": "text",
        "hovertext": [
            f"{name}: {duration(seconds)} ({percent(share(seconds, series.end_s))})"
            for name, seconds, _ in parts
        ],
    }
    layout: dict[str, JsonValue] = {
        **base_layout(height=FRAME_HEIGHT + ROW_HEIGHT * len(parts)),
        "showlegend": False,
        "xaxis": axis(f"wall time, {clock.unit}", range=[0, 2 * max(lengths)]),
        "yaxis": {
            "automargin": True,
            "autorange": "reversed",
            "ticks": "outside",
            "ticklen": 6,
            "tickcolor": "rgba(0,0,0,0)",
        },
        "hovermode": "closest",
    }
    return {"data": [bars], "layout": layout}


def _has_times(series: Series) -> bool:
    return series.imported is None or series.imported.times == "wall"


def _parts(series: Series) -> list[tuple[str, float, str]]:
    account = settle(spend(series), measure_exchange(series) if series.imported is None else None)
    return [(item.name, item.seconds, COLOURS.get(item.name, MUTED)) for item in account.items]
