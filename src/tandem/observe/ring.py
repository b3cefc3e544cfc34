"""Bytes on the links between hosts: what summing gradients around a ring needs, and what the interfaces carried."""

import math
from dataclasses import dataclass

import numpy as np

from tandem.observe.exchange import Exposure
from tandem.observe.series.columns import HostSamples, Series
from tandem.observe.spent import pauses

__all__ = [
    "LOOPBACK",
    "Capacity",
    "Traffic",
    "WhatIf",
    "gradient_bytes",
    "larger_step",
    "link_capacity",
    "ordered_link",
    "ring_bytes",
    "traffic_per_step",
    "what_if",
]

FP32_BYTES = 4
FEWEST_SAMPLES = 5
LOOPBACK = "lo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the slowest link between two hosts was seen to carry in one direction."""

    bytes_per_s: float
    origin: str
    """How it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one host's busiest interface carried while it trained, divided by the steps made meanwhile."""

    host: str
    interface: str
    sent_bytes: float
    received_bytes: float
    fullest_bytes_per_s: float
    """In the fuller direction, exceeded in one second of twenty; at least the mean."""
    retransmitted: float
    """TCP segments that the host sent again, a step."""
    samples: int

    @property
    def fuller_bytes(self) -> float:
        """In the fuller direction."""
        return max(self.sent_bytes, self.received_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Seconds a step under other conditions, by `step = max(T, f·T + α + bytes / rate)`."""

    perfect_s: float
    """With a network that takes no time."""
    double_rate_s: float
    """With a link twice as fast, or half of the bytes."""
    tenfold_rate_s: float
    double_batch_gain: float
    """Tokens a second against now with twice the batch: computing doubles, bytes stay."""


def ring_bytes(gradients: float, ranks: int) -> float:
    """What each rank sends and receives in a sum around a ring; a host's link carries as much in each direction."""
    return 2 * (ranks - 1) / ranks * gradients if ranks > 1 else 0.0


def gradient_bytes(series: Series) -> int:
    """Bytes of gradients, as they are summed over ranks; 0 where it is not known."""
    started = series.started
    if started is not None and started.gradient_bytes:
        return started.gradient_bytes
    sent = series.ranks.sent_bytes
    known = sent[np.isfinite(sent) & (sent > 0)]
    if len(known):
        return int(np.median(known))
    return FP32_BYTES * started.parameters if started is not None else 0


def link_capacity(series: Series, traffic: tuple[Traffic, ...] = ()) -> Capacity | None:
    """By the measurement before training, or by what was carried later, if that is more; None without the former.

    What interfaces agreed on with the switch is not what the links behind it deliver.
    """
    measured = [link.bytes_per_s for link in series.links if math.isfinite(link.bytes_per_s)]
    if not measured:
        return None
    least, carried = min(measured), max((host.fullest_bytes_per_s for host in traffic), default=0.0)
    if carried > least:
        return Capacity(
            bytes_per_s=carried, origin="as it carried while it trained, more than was measured before"
        )
    return Capacity(bytes_per_s=least, origin="measured between hosts before training")


def ordered_link(series: Series) -> float:
    """Bytes a second in one direction that the slowest interface claims; nan where none does."""
    claims = [host.interface_bits_per_s for host in series.examined if host.interface_bits_per_s > 0]
    for samples in series.samples.values():
        busiest = _busiest(samples, np.ones(len(samples.time_s), np.bool_))
        if busiest is not None and samples.described.interface_bits_per_s[busiest] > 0:
            claims.append(samples.described.interface_bits_per_s[busiest])
    return min(claims) / 8 if claims else math.nan


def traffic_per_step(series: Series) -> tuple[Traffic, ...]:
    """What each sampled host carried a step; nothing where samples and steps do not meet."""
    steps = series.steps
    if len(steps) < 2:
        return ()
    begin_s, end_s = float(steps.time_s[0]), float(steps.time_s[-1])
    # The imported kind has one row for many steps, and no samples.
    made = int(steps.step[-1] - steps.step[0]) + series.redone_steps
    # Between an end and a later resume nothing ran that could carry anything.
    stopped_s = sum(stopped for at_s, stopped in pauses(series) if begin_s < at_s <= end_s)
    found = (
        _traffic(host, samples, window=(begin_s, end_s), stopped_s=stopped_s, steps=made)
        for host, samples in series.samples.items()
    )
    return tuple(each for each in found if each is not None)


def what_if(exposure: Exposure, *, transfer_s: float) -> WhatIf:
    """Other networks and batches; `transfer_s` is what the bytes take at the link's speed, nan where not known."""
    # A reader that sets the pace goes on doing so.
    exposed = exposure.saved_s
    # Without a known speed nothing is taken to be hidden behind computing: this promises the least.
    whole = max(exposed, transfer_s) if math.isfinite(transfer_s) else exposed

    def at_rate(factor: float) -> float:
        return exposure.step_s - min(exposed, whole * (1 - 1 / factor))

    return WhatIf(
        perfect_s=exposure.step_s - exposed,
        double_rate_s=at_rate(2),
        tenfold_rate_s=at_rate(10),
        double_batch_gain=2 * exposure.step_s / larger_step(exposure, 2)[0],
    )


def larger_step(exposure: Exposure, times: int) -> tuple[float, float]:
    """Seconds of a step with so many times the text, and of its exchange, which stays the same.

    More computing may hide more of it: this promises the least.
    """
    if exposure.is_starved:
        return times * exposure.step_s, exposure.network_s
    growing_s = exposure.compute_s + exposure.data_s + exposure.straggler_s
    return exposure.step_s + (times - 1) * growing_s, exposure.network_s


def _traffic(
    host: str, samples: HostSamples, *, window: tuple[float, float], stopped_s: float, steps: int
) -> Traffic | None:
    inside = (samples.time_s > window[0]) & (samples.time_s <= window[1])
    if inside.sum() < FEWEST_SAMPLES or steps < 1:
        return None
    busiest = _busiest(samples, inside)
    if busiest is None:
        return None
    seconds = samples.seconds[inside].astype(np.float64)
    sent, received = samples.sent_bytes_per_s[busiest, inside], samples.received_bytes_per_s[busiest, inside]
    # Seconds between samples that are missing carried about as much as the others.
    whole_s = max(float(np.nansum(seconds)), 1e-9)
    scale = max(1.0, (window[1] - window[0] - stopped_s) / whole_s) / steps
    means = [float(np.nansum(direction * seconds)) / whole_s for direction in (sent, received)]
    return Traffic(
        host=host,
        interface=samples.described.interfaces[busiest],
        sent_bytes=float(np.nansum(sent * seconds)) * scale,
        received_bytes=float(np.nansum(received * seconds)) * scale,
        fullest_bytes_per_s=max(*means, float(np.nanpercentile(np.fmax(sent, received), 95))),
        retransmitted=_sum_known(samples.retransmitted[inside]) * scale,
        samples=int(inside.sum()),
    )


def _sum_known(values: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> float:
    """The sum; nan where not one is known, since nothing counted is not nothing."""
    return float(np.nansum(values)) if np.isfinite(values).any() else math.nan


def _busiest(samples: HostSamples, inside: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int | None:
    """The interface between hosts that carried most; None where there is none or nothing is known of it."""
    both = samples.sent_bytes_per_s[:, inside] + samples.received_bytes_per_s[:, inside]
    carried = {
        number: float(np.nansum(both[number]))
        for number, name in enumerate(samples.described.interfaces)
        if name != LOOPBACK and np.isfinite(both[number]).any()
    }
    return max(carried, key=lambda number: carried[number]) if carried else None
