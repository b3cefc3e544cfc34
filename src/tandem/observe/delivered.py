"""What links deliver, by measurement: the nominal speed of an interface says only what they cannot exceed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tandem.observe.numbers import link_rate
from tandem.observe.series.columns import Series
from tandem.runlog.event import HostExamined, LinkMeasured

__all__ = ["LOOPBACK", "Delivered", "delivered", "delivered_by", "speeds_text"]

LOOPBACK = "lo"

_BITS = 8
_BEYOND = 1.1
"""A second with so many times what was measured proves that the link delivers more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A rate at which the link behind an interface has carried data in one direction."""

    bytes_per_s: float
    is_measured: bool
    """By a stream before training; else it is the highest that was seen, and the link may deliver more."""

    def __str__(self) -> str:
        origin = "measured" if self.is_measured else "highest seen"
        return f"{origin} {link_rate(self.bytes_per_s)}"


def delivered(
    host: str,
    interface: str,
    *,
    links: Iterable[LinkMeasured],
    examined: Iterable[HostExamined],
    highest_bytes_per_s: float,
    is_busiest: bool,
) -> Delivered | None:
    """By the host's slowest link as it was measured, or by the highest rate that its samples saw; None before any.

    Where links are named by addresses, the slowest of all stands for each; where nobody says which interface they pass,
    it is the busiest. Behind the loopback there is no link.
    """
    if interface == LOOPBACK:
        return None
    known = [link for link in links if math.isfinite(link.bytes_per_s) and link.bytes_per_s > 0]
    own = [link.bytes_per_s for link in known if host in (link.sender, link.receiver)]
    rates = own or [link.bytes_per_s for link in known]
    passed = {each.host: each.interface for each in examined if each.interface}
    named = {passed[host]} if host in passed else set(passed.values())
    if rates and (interface in named or (is_busiest and not named)):
        measured = min(rates)
        if not highest_bytes_per_s > _BEYOND * measured:
            return Delivered(bytes_per_s=measured, is_measured=True)
    if highest_bytes_per_s > 0:
        return Delivered(bytes_per_s=highest_bytes_per_s, is_measured=False)
    return None


def delivered_by(series: Series, host: str, row: int) -> Delivered | None:
    """The same, of a sampled host of a run and the interface in this row of its samples."""
    samples = series.samples[host]
    names = samples.described.interfaces
    rates = np.nan_to_num(np.fmax(samples.sent_bytes_per_s, samples.received_bytes_per_s))
    highest = rates.max(axis=1, initial=0.0)
    outer = [number for number, name in enumerate(names) if name != LOOPBACK and highest[number] > 0]
    return delivered(
        host,
        names[row],
        links=series.links,
        examined=series.examined,
        highest_bytes_per_s=float(highest[row]),
        is_busiest=bool(outer) and row == max(outer, key=lambda number: (highest[number], -number)),
    )


def speeds_text(rate: Delivered | None, *, nominal_bits_per_s: int) -> str:
    """What the link delivers, with what its interface claims beside it; empty where neither is known."""
    nominal = f"nominal {link_rate(nominal_bits_per_s / _BITS)}" if nominal_bits_per_s > 0 else ""
    return ", ".join(filter(None, ("" if rate is None else str(rate), nominal)))
