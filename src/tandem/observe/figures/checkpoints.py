"""The figure of what a checkpoint is made of."""

from tandem.artefact import JsonValue
from tandem.observe.figures.look import SOURCE, Figure, base_layout, label
from tandem.observe.numbers import megabytes
from tandem.observe.series.columns import Series

__all__ = ["checkpoint_parts_figure"]

ROW_HEIGHT = 32
FRAME_HEIGHT = 60


def checkpoint_parts_figure(series: Series) -> Figure | None:
    """The size of each file of the newest checkpoint."""
    written = [each for each in series.checkpoints if each.files]
    if not written:
        return None
    files = sorted(written[-1].files.items(), key=lambda file: file[1])
    sizes = [size / 1e6 for _, size in files]
    bars: dict[str, JsonValue] = {
        "type": "bar",
        "orientation": "h",
        "name": f"checkpoint of step {written[-1].step:,}",
        "x": [round(size, 6) for size in sizes],
        "y": [label(name) for name, _ in files],
        "marker": {"color": SOURCE},
        "text": [megabytes(size) for _, size in files],
        "textposition": "outside",
        "textangle": 0,
        "cliponaxis": False,
        "hoverinfo": "y+text",
    }
    layout: dict[str, JsonValue] = {
        **base_layout(height=FRAME_HEIGHT + ROW_HEIGHT * len(files)),
        "showlegend": False,
        "xaxis": {"title": {"text": "size, MB"}, "range": [0, 1.35 * max(sizes)], "automargin": True},
        "yaxis": {"automargin": True, "ticks": "outside", "ticklen": 6, "tickcolor": "rgba(0,0,0,0)"},
        "hovermode": "closest",
    }
    return {"data": [bars], "layout": layout}
