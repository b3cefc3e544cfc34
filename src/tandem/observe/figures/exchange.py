"""Figures of the exchange of gradients: what it costs, and what crosses the links for it."""

from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from tandem.observe.exchange_mode import encoded_mode, step_bytes
from tandem.observe.figures.curve import Trace, axis, curves, line, mean_of_ranks
from tandem.observe.figures.look import BROWN, GREEN, MUTED, PURPLE, SOURCE, TARGET, Figure
from tandem.observe.probing import costs_of_probes
from tandem.observe.ring import LOOPBACK
from tandem.observe.series.columns import HostSamples, Series
from tandem.observe.stretches import host_count

__all__ = ["exchange_figure", "step_bytes_figure"]

COLOURS = (SOURCE, TARGET, GREEN, PURPLE)
BUCKETS = 200
"""Stretches of the run over which bytes are divided by steps."""
STEPS_A_BUCKET = 25
"""At least so many steps on average, or single steps would jump from one stretch to the next."""


def exchange_figure(series: Series) -> Figure | None:
    """Waits of every step, split into network and waiting for the slowest rank; and the truth where it was probed."""
    if series.ranks.ranks < 2:
        return None
    traces = [*_waits(series), *_probed(series)]
    return curves(traces, x=axis("step"), y=axis("seconds a step", rangemode="tozero")) if traces else None


def _waits(series: Series) -> list[Trace]:
    waited = series.ranks.phases.get("exchange")
    if waited is None or not np.isfinite(waited).any():
        return []
    # The last to arrive waits for the network alone; a rank that was not there in a step is nan: fmin passes it over.
    network = np.fmin.reduce(waited, axis=0).astype(np.float64)
    straggler = np.maximum(0.0, mean_of_ranks(waited) - network)
    return [
        line(
            f"network: the least wait of {_heard(series, waited)}", series.steps.step, network, colour=TARGET
        ),
        line("waiting for the slowest rank, mean", series.steps.step, straggler, colour=BROWN, dash="dot"),
    ]


def _heard(series: Series, waited: NDArray[np.float32]) -> str:
    """Of how many ranks the waits are known: the last to arrive may be one of the others."""
    ranks = max(series.ranks.ranks, series.started.ranks if series.started is not None else 0)
    heard = int(np.isfinite(waited).any(axis=1).sum())
    return "all ranks" if heard == ranks else f"{heard} of {ranks} ranks"


def _probed(series: Series) -> list[Trace]:
    steps, cost = costs_of_probes(series.probes)
    if not len(steps):
        return []
    trace = line("with exchange less without it, same batches", steps, cost, colour=PURPLE, markers=True)
    return [{**trace, "mode": "markers"}]


def step_bytes_figure(series: Series) -> Figure | None:
    """Bytes that crossed each host's interfaces for each step, in both directions, beside what a ring needs."""
    edges = _edges(series)
    if edges is None or series.ranks.ranks < 2:
        return None
    done, _ = np.histogram(series.steps.time_s, edges)
    middle = (edges[:-1] + edges[1:]) / 2
    at = np.interp(middle, series.steps.time_s, series.steps.step)
    traces: list[Trace] = []
    is_inner = host_count(series) == 1
    for (host, samples), colour in zip(series.samples.items(), cycle(COLOURS), strict=False):
        rows = [
            row for row, name in enumerate(samples.described.interfaces) if (name == LOOPBACK) == is_inner
        ]
        for direction, found, dash in (
            ("sent", samples.sent_bytes_per_s, "solid"),
            ("received", samples.received_bytes_per_s, "dot"),
        ):
            crossed = _crossed(samples, found[rows], edges)
            each = np.where(done > 0, crossed / np.maximum(done, 1), np.nan)
            if np.isfinite(each).any() and np.nanmax(each) > 0:
                traces.append(line(f"{host} {direction}", at, each / 1e6, colour=colour, dash=dash))
    if not traces:
        return None
    return curves([*traces, *_predicted(series, at)], x=axis("step"), y=axis("MB a step", rangemode="tozero"))


def _edges(series: Series) -> NDArray[np.float64] | None:
    times = series.steps.time_s
    if len(times) < STEPS_A_BUCKET or not series.samples:
        return None
    buckets = max(1, min(BUCKETS, len(times) // STEPS_A_BUCKET))
    return np.linspace(times[0], times[-1], buckets + 1)


def _crossed(
    samples: HostSamples, rates: NDArray[np.float32], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bytes over all these interfaces in each stretch."""
    carried = np.nansum(rates.astype(np.float64), axis=0) * samples.seconds
    total, _ = np.histogram(samples.time_s, edges, weights=np.nan_to_num(carried))
    sampled, _ = np.histogram(samples.time_s, edges)
    return np.where(sampled > 0, total, np.nan)


def _predicted(series: Series, at: NDArray[np.float64]) -> list[Trace]:
    ranks = series.started.ranks if series.started is not None else series.ranks.ranks
    # On one host all ranks of the ring send through the same interface.
    sharing = ranks if host_count(series) == 1 else 1
    need = sharing * step_bytes(series, ranks) / 1e6
    if not need:
        return []
    name = "as reckoned, each direction" if encoded_mode(series) else "a ring's need, each direction"
    return [line(name, at[[0, -1]], np.full(2, need), colour=MUTED, dash="dash")]
