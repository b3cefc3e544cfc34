"""Numbers of a finding as text, each in the unit that a person reads it in."""

import math
from collections.abc import Callable, Mapping

from tandem.observe.finding import Evidence
from tandem.observe.numbers import count, decimal, duration, percent

__all__ = ["evidence_text", "quantity"]

KILO = 1000
PREFIXES = ("", "k", "M", "G", "T", "P")


def evidence_text(evidence: Evidence) -> str:
    """The value with its unit, and its 95 % interval where it has one."""
    if isinstance(evidence.value, str):
        return evidence.value
    if evidence.low is None or evidence.high is None:
        return quantity(evidence.value, evidence.unit)
    # A unit that is written out is said once; one with prefixes may differ from number to number.
    unit, after = (evidence.unit, "") if evidence.unit in _SHOWN else ("", evidence.unit)
    value, low, high = (quantity(each, unit) for each in (evidence.value, evidence.low, evidence.high))
    return f"{value} ({low} to {high}) {after}".rstrip()


def quantity(value: float, unit: str) -> str:
    """A number in its unit; what is no number is said to be unknown."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "without limit" if value > 0 else "less than any number"
    if (shown := _SHOWN.get(unit)) is not None:
        return shown(value)
    return f"{_plain(value)} {unit}".rstrip()


def _plain(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return count(int(value))
    return decimal(value) if abs(value) >= 0.1 else f"{value:.3g}"


def _seconds(value: float) -> str:
    if 0 < abs(value) < 1:
        return f"{value * KILO:.3g} ms"
    return f"{value:.2f} s" if abs(value) < 60 else duration(value) if value > 0 else f"{value:,.0f} s"


def _scaled(unit: str) -> Callable[[float], str]:
    def shown(value: float) -> str:
        power = 0
        while abs(value) >= KILO - 0.5 and power < len(PREFIXES) - 1:
            value, power = value / KILO, power + 1
        number = f"{value:.0f}" if power == 0 and value == int(value) else f"{value:.3g}"
        return f"{number} {PREFIXES[power]}{unit}"

    return shown


def _rate(value: float) -> str:
    return f"{value:,.0f} tokens/s" if abs(value) >= 100 else f"{value:.3g} tokens/s"


_SHOWN: Mapping[str, Callable[[float], str]] = {
    "s": _seconds,
    "bytes": _scaled("B"),
    "bytes/s": _scaled("B/s"),
    "bits/s": _scaled("b/s"),
    "flop/s": _scaled("FLOP/s"),
    "flops/s": _scaled("FLOP/s"),
    "flop": _scaled("FLOP"),
    "share": percent,
    "tokens/s": _rate,
}
