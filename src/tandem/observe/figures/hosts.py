"""Timelines of the hosts, one below the other on one time axis: GPUs, network, processor."""

from collections.abc import Callable, Iterable

import numpy as np

from tandem.artefact import JsonValue
from tandem.observe.delivered import LOOPBACK, delivered_by, speeds_text
from tandem.observe.figures.clock import Clock, clock_of, marks
from tandem.observe.figures.curve import MOST, Column, Trace, axis, band, line, mean_of_ranks
from tandem.observe.figures.look import (
    BROWN,
    GREEN,
    MUTED,
    PURPLE,
    SKY,
    SOURCE,
    TARGET,
    Figure,
    base_layout,
    label,
)
from tandem.observe.series.columns import HostSamples, Series
from tandem.observe.series.thin import thin
from tandem.observe.stretches import host_count

__all__ = ["cpu_figure", "gpus_figure", "network_figure"]

ROW_HEIGHT, GAP, STRIP, FRAME = 130, 26, 30, 90
MARGIN = 64
"""Left of the axis, the same in all: one looks from figure to figure at the same moment."""
MOST_HOSTS = 16
DIRECTIONS = ((SOURCE, TARGET), (GREEN, PURPLE), (SKY, BROWN))
"""Colours of what interfaces send and receive, in their order."""
BUSY_SHARE = 0.01
"""An interface that carried less than this share of the busiest one's bytes is left out."""


def gpus_figure(series: Series) -> Figure | None:
    """Utilisation, power and memory of the GPUs of every host: the mean of its GPUs, and from lowest to highest."""
    return _rows(series, lambda host, clock: _gpu_lines(series.samples[host], clock), title="%", top=100.0)


def cpu_figure(series: Series) -> Figure | None:
    """Processor and memory of every host."""
    return _rows(series, lambda host, clock: _cpu_lines(series.samples[host], clock), title="%", top=100.0)


def network_figure(series: Series) -> Figure | None:
    """What every host sent and received on the interfaces that carried something; of a lone host also inside of it."""
    is_alone = host_count(series) == 1
    return _rows(
        series,
        lambda host, clock: _network_lines(series, host, clock, is_alone=is_alone),
        title="MB/s",
        top=None,
        about=lambda host: _links_text(series, host, is_alone=is_alone),
    )


def _gpu_lines(samples: HostSamples, clock: Clock) -> list[Trace]:
    at, described = clock.at(samples.time_s), samples.described
    limits = np.array(described.gpu_power_limit_w, np.float64)[:, None]
    room = np.array(described.gpu_memory_bytes, np.float64)[:, None]
    shares = (
        ("utilisation: some kernel ran", samples.gpu_utilisation, MUTED, "solid"),
        ("power, of the limit", _part(samples.gpu_power_w, limits), TARGET, "solid"),
        ("memory in use", _part(samples.gpu_memory_bytes, room), GREEN, "dot"),
    )
    return _shares(shares, at) if described.gpus else []


def _cpu_lines(samples: HostSamples, clock: Clock) -> list[Trace]:
    at = clock.at(samples.time_s)
    memory = _part(samples.memory_bytes, np.float64(samples.described.memory_bytes))
    shares = (
        ("cores busy", samples.cpu, SOURCE, "solid"),
        ("memory in use", memory, GREEN, "dot"),
    )
    return _shares(shares, at)


def _part(used: Column, whole: Column | np.float64) -> Column:
    return np.asarray(used / np.where(whole > 0, whole, np.nan))


def _shares(shares: Iterable[tuple[str, Column, str, str]], at: Column) -> list[Trace]:
    known = [(*each, 100 * np.atleast_2d(each[1])) for each in shares if np.isfinite(each[1]).any()]
    bands = [_from_lowest(name, at, rows, colour) for name, _, colour, _, rows in known if len(rows) > 1]
    lines = [
        line(name, at, mean_of_ranks(rows), colour=colour, dash=dash) for name, _, colour, dash, rows in known
    ]
    return [*bands, *lines]


def _from_lowest(name: str, at: Column, rows: Column, colour: str) -> Trace:
    """From the lowest device to the highest."""
    (x, low), (_, high) = (thin(at, each.reduce(rows, axis=0), MOST) for each in (np.fmin, np.fmax))
    return {**band(f"{name}, lowest to highest", x, low, high, colour=colour), "showlegend": False}


def _network_lines(series: Series, host: str, clock: Clock, *, is_alone: bool) -> list[Trace]:
    samples = series.samples[host]
    at = clock.at(samples.time_s)
    traces: list[Trace] = []
    for number, row in enumerate(_busy_interfaces(samples, is_alone=is_alone)):
        name = samples.described.interfaces[row]
        sent, received = DIRECTIONS[number % len(DIRECTIONS)]
        directions = (
            ("sent", samples.sent_bytes_per_s, sent, "solid"),
            ("received", samples.received_bytes_per_s, received, "dot"),
        )
        traces += [
            line(f"{name} {direction}", at, found[row] / 1e6, colour=colour, dash=dash)
            for direction, found, colour, dash in directions
        ]
        link = delivered_by(series, host, row)
        # The nominal speed is no line: it would flatten what a slower link delivers.
        if link is not None and link.is_measured:
            traces.append(
                _level(f"{name}: link, as measured before", link.bytes_per_s / 1e6, clock, "longdash")
            )
    return traces


def _links_text(series: Series, host: str, *, is_alone: bool) -> str:
    """What the links behind the interfaces that are drawn deliver, and what these claim."""
    described = series.samples[host].described
    told = {
        described.interfaces[row]: speeds_text(
            delivered_by(series, host, row), nominal_bits_per_s=described.interface_bits_per_s[row]
        )
        for row in _busy_interfaces(series.samples[host], is_alone=is_alone)
        if described.interfaces[row] != LOOPBACK
    }
    return "; ".join(f"{name}: {speeds}" for name, speeds in told.items() if speeds)


def _busy_interfaces(samples: HostSamples, *, is_alone: bool) -> list[int]:
    """Rows of the interfaces worth a line: where all ranks are on one host, what they send each other is first."""
    carried = np.nansum(samples.sent_bytes_per_s, axis=1) + np.nansum(samples.received_bytes_per_s, axis=1)
    every = range(len(carried))
    outer = [row for row in every if is_alone or samples.described.interfaces[row] != LOOPBACK]
    busiest = max((float(carried[row]) for row in outer), default=0.0)
    shown = outer if busiest > 0 else every
    return [row for row in shown if carried[row] > 0 and carried[row] >= BUSY_SHARE * busiest]


def _level(name: str, height: float, clock: Clock, dash: str) -> Trace:
    ends = np.array([0.0, clock.end_s])
    return line(name, clock.at(ends), np.full(2, height), colour=MUTED, dash=dash)


def _rows(
    series: Series,
    lines: Callable[[str, Clock], list[Trace]],
    *,
    title: str,
    top: float | None,
    about: Callable[[str], str] = lambda _host: "",
) -> Figure | None:
    """A row of lines for each host that has some, below a strip of marks."""
    clock = clock_of(series)
    rows = [
        (host, drawn)
        for host, samples in series.samples.items()
        if len(samples.time_s) and (drawn := lines(host, clock))
    ]
    if not rows:
        return None
    more, rows = len(rows) - MOST_HOSTS, rows[:MOST_HOSTS]
    plot = STRIP + (ROW_HEIGHT + GAP) * len(rows)
    layout: dict[str, JsonValue] = {
        **base_layout(height=plot + FRAME),
        "margin": {"l": MARGIN, "r": 16, "t": 8, "b": 8},
        "xaxis": clock.axis(anchor=f"y{len(rows)}" if len(rows) > 1 else "y"),
        "yaxis99": {"domain": [1 - STRIP / plot, 1], "range": [0, 4], "visible": False, "anchor": "x"},
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
        "hovermode": "closest",
        "showlegend": True,
    }
    data: list[JsonValue] = []
    notes: list[JsonValue] = []
    seen: set[JsonValue] = set()
    for number, (host, drawn) in enumerate(rows):
        below = (STRIP + (ROW_HEIGHT + GAP) * (number + 1)) / plot
        domain: list[JsonValue] = [1 - below, 1 - below + ROW_HEIGHT / plot]
        name = "" if number == 0 else str(number + 1)
        limits: dict[str, JsonValue] = {"rangemode": "tozero"} if top is None else {"range": [0, top * 1.05]}
        layout[f"yaxis{name}"] = axis(title, domain=domain, anchor="x", nticks=5, automargin=False, **limits)
        notes.append(_note(host, domain[1], about=about(host)))
        for trace in drawn:
            shown = trace["name"] not in seen and trace.get("showlegend", True)
            seen.add(trace["name"])
            data.append({**trace, "yaxis": f"y{name}", "showlegend": shown, "legendgroup": trace["name"]})
    if more > 0:
        notes.append(_note(f"{more} more hosts are not shown", 0.0))
    layout["annotations"] = notes
    return {"data": [*data, *marks(series, yaxis="y99")], "layout": layout}


def _note(host: str, height: JsonValue, *, about: str = "") -> JsonValue:
    return {
        "text": f"<b>{label(host)}</b>" + (f" {label(about)}" if about else ""),
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": height,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }
