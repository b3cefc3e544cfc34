"""The figure of sentence lengths on both sides."""

from tandem.artefact import JsonValue
from tandem.observe.figures.look import SOURCE, TARGET, Figure, base_layout, label
from tandem.observe.histogram import axis_end, bucket_starts, share_by_length
from tandem.observe.numbers import count, percent, share
from tandem.runlog.card import Histogram, Languages, SideHistograms

__all__ = ["lengths_figure"]


def lengths_figure(lengths: SideHistograms, languages: Languages) -> Figure:
    """Both sides over one axis, as the share of sentences at each length, so that unequal buckets compare."""
    end = axis_end(lengths.source, lengths.target)
    layout: dict[str, JsonValue] = {
        **base_layout(height=320),
        "xaxis": {"title": {"text": "pieces in a sentence"}, "range": [0, end], "automargin": True},
        "yaxis": {
            "title": {"text": "sentences of that length, %"},
            "rangemode": "tozero",
            "automargin": True,
        },
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    source = _steps(lengths.source, name=f"{languages.source} (source)", colour=SOURCE, dash="solid")
    target = _steps(lengths.target, name=f"{languages.target} (target)", colour=TARGET, dash="dot")
    return {"data": [source, target], "layout": layout}


def _steps(histogram: Histogram, *, name: str, colour: str, dash: str) -> dict[str, JsonValue]:
    starts = bucket_starts(histogram)
    by_length = share_by_length(histogram)
    ends = [histogram.edges[-1] + 1, 0.0] if histogram.edges else [1, 0.0]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label(name),
        "x": [*starts, ends[0]],
        "y": [*(round(100 * by_length[start - 1], 4) for start in starts), ends[1]],
        "line": {"shape": "hv", "color": colour, "width": 2, "dash": dash},
        "fill": "tozeroy",
        "fillcolor": f"{colour}26",
        "hoverinfo": "text",
        "hovertext": [*_bucket_texts(histogram, name), ""],
    }


def _bucket_texts(histogram: Histogram, name: str) -> list[str]:
    total = sum(histogram.counts)
    return [
        label(f"{name}, {_span(start, edge)}: {count(counted)} sentences ({percent(share(counted, total))})")
        for start, edge, counted in zip(
            bucket_starts(histogram), histogram.edges, histogram.counts, strict=True
        )
    ]


def _span(start: int, edge: int) -> str:
    return f"length {start}" if start == edge else f"lengths {start}–{edge}"
