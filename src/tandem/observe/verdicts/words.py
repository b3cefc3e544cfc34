"""Seconds, rates and links as the sentences of verdicts say them, and advice that several give."""

from tandem.observe.series.columns import Series

__all__ = ["UTILISATION", "bit_rate", "byte_rate", "evaluate_more", "megabytes_of", "seconds"]

UTILISATION = (
    "utilisation counts every moment in which some kernel is on the GPU, and a kernel that waits for the network "
    "is on it: 100 % proves nothing"
)


def seconds(value: float) -> str:
    """Seconds or milliseconds, to three digits."""
    if abs(value) < 0.0995:
        return f"{value * 1000:.3g} ms"
    return f"{value:.2f} s" if value < 99.5 else f"{value:,.0f} s"


def byte_rate(value: float) -> str:
    """Bytes a second, in MB/s."""
    return f"{value / 1e6:,.0f} MB/s" if value >= 10e6 else f"{value / 1e6:.2g} MB/s"


def bit_rate(bytes_per_s: float) -> str:
    """Bytes a second as links are sold, in Gb/s or Mb/s."""
    bits = bytes_per_s * 8
    return f"{bits / 1e9:.3g} Gb/s" if bits >= 0.995e9 else f"{bits / 1e6:.3g} Mb/s"


def megabytes_of(value: float) -> str:
    """Bytes in MB, to three digits."""
    if value >= 99.5e6:
        return f"{value / 1e6:,.0f} MB"
    return f"{value / 1e6:.3g} MB"


def evaluate_more(series: Series) -> str:
    """The advice to do so, with the setting as the tool that trained the run calls it, where that is known."""
    if series.imported is None:
        return "Evaluate more often (evaluate.every_steps)."
    return f"Evaluate more often{' (eval_steps)' if 'eval_steps' in series.imported.facts else ''}."
