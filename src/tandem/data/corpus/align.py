"""Where two files that should be aligned come apart."""

from collections.abc import Iterable
from itertools import islice

import numpy as np

__all__ = ["suspicious_line"]

LOOKED_AT = 5_000_000
"""Lines held in memory at most: 8 bytes each side."""


def suspicious_line(source: Iterable[bytes], target: Iterable[bytes], counts: tuple[int, int]) -> int:
    """The line (from 1) where one side most likely gained or lost lines, judged by the lengths of the lines.

    If the longer side has `d` lines more, then up to some line k the sides match as they stand, and from there on the
    longer one is `d` lines behind. The k with the smallest total mismatch of log lengths is the answer.
    """
    shift = abs(counts[0] - counts[1])
    shorter, longer = (source, target) if counts[0] < counts[1] else (target, source)
    short = _log_lengths(islice(shorter, LOOKED_AT))
    long = _log_lengths(islice(longer, LOOKED_AT + shift))
    size = min(len(short), max(len(long) - shift, 0))
    if not size:
        return 1
    # One language writes longer than the other: take that out before comparing.
    short = short[:size] + np.mean(long) - np.mean(short)
    as_is = np.abs(short - long[:size])
    shifted = np.abs(short - long[shift : shift + size])
    before = np.concatenate(([0.0], np.cumsum(as_is)))
    after = np.concatenate((np.cumsum(shifted[::-1])[::-1], [0.0]))
    return int(np.argmin(before + after)) + 1


def _log_lengths(lines: Iterable[bytes]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.log1p(np.fromiter((len(line) for line in lines), dtype=np.float64))
