"""Numbers as text: one way to write counts, bytes and shares, for every reader."""

from math import isfinite

__all__ = ["count", "decimal", "duration", "link_rate", "megabytes", "percent", "share", "short_count"]

MILLION = 1_000_000
BILLION = 1_000_000_000
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


def count(number: int) -> str:
    """A whole number with thousands separators."""
    return f"{number:,}"


def short_count(number: int) -> str:
    """A whole number for a sentence: exact below a million, then in millions and billions."""
    if number < MILLION:
        return count(number)
    # What would round to "1,000.0 million" is said in billions.
    if number < BILLION - MILLION // 20:
        return f"{number / MILLION:,.1f} million"
    return f"{number / BILLION:,.1f} billion"


def decimal(number: float) -> str:
    """A ratio or a mean, to two decimals below ten and to one above."""
    return f"{number:,.2f}" if abs(number) < 10 else f"{number:,.1f}"


def duration(seconds: float) -> str:
    """A stretch of time for a sentence, in its two greatest units; a dash for one that is not known."""
    if not isfinite(seconds):
        return "–"
    whole = round(seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S:02d} s"
    if whole < DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S:02d} min"
    return f"{whole // DAY_S:,} d {whole % DAY_S // HOUR_S} h"


def link_rate(bytes_per_s: float) -> str:
    """Bytes a second as links are sold, in Gb/s or Mb/s; a dash for what is not known."""
    bits = bytes_per_s * 8
    if not isfinite(bits):
        return "–"
    if 0 < bits < 0.5e6:
        return "< 1 Mb/s"
    return f"{bits / 1e9:.3g} Gb/s" if bits >= 0.9995e9 else f"{bits / 1e6:.0f} Mb/s"


def megabytes(size_bytes: int) -> str:
    """Bytes in MB, which are 10^6 bytes; below one of them to three decimals."""
    if size_bytes == 0:
        return "0 MB"
    if size_bytes < 500:
        return "< 0.001 MB"
    return f"{size_bytes / MILLION:,.{1 if size_bytes >= MILLION else 3}f} MB"


def percent(part: float) -> str:
    """A share from 0 to 1 in percent; only nothing is written as 0.0 %, and only all of it as 100.0 %."""
    value = part * 100
    if 0 < value < 0.05:
        return "< 0.1 %"
    if 99.95 <= value < 100:
        return "> 99.9 %"
    return f"{value:.1f} %"


def share(part: float, whole: float) -> float:
    """`part` of `whole` from 0 to 1; nothing of nothing is 0."""
    return part / whole if whole else 0.0
