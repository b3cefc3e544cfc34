"""Measured numbers with their units, for a person."""

import math

__all__ = ["bits_a_second", "bytes_a_second", "operations_a_second", "seconds", "share", "size"]


def size(count_bytes: float) -> str:
    """Bytes in MB below a GB, then in GB; decimal."""
    return f"{count_bytes / 1e9:,.1f} GB" if count_bytes >= 1e9 else f"{count_bytes / 1e6:,.1f} MB"


def bytes_a_second(speed: float) -> str:
    """Of a disk."""
    return "unknown" if math.isnan(speed) else f"{size(speed)}/s"


def bits_a_second(bits: float) -> str:
    """Of a link."""
    if math.isnan(bits):
        return "unknown"
    return f"{bits / 1e9:,.3g} Gb/s" if bits >= 1e9 else f"{bits / 1e6:,.3g} Mb/s"


def operations_a_second(flops: float) -> str:
    """Of a GPU, or of a processor."""
    return f"{flops / 1e12:,.3g} TFLOP/s" if flops >= 1e12 else f"{flops / 1e9:,.3g} GFLOP/s"


def seconds(value: float) -> str:
    """From microseconds to minutes."""
    if math.isnan(value):
        return "unknown"
    if abs(value) < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if abs(value) < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:,.3g} s" if abs(value) < 1000 else f"{value:,.0f} s"


def share(value: float) -> str:
    """In percent."""
    return "unknown" if math.isnan(value) else f"{100 * value:.3g} %"
