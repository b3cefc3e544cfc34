"""A process whose memory does not grow with the arrays that pass through it."""

import ctypes
from contextlib import suppress

__all__ = ["keep_little"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What glibc's `mallopt` calls these."""
_MOST_BYTES = 1 << 20


def keep_little() -> None:
    """Give memory back to the system soon after it is free, where the system's library can be told so.

    By itself it raises what it keeps with the largest array that was ever freed: with the length of a run.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _MOST_BYTES)
        library.mallopt(_TRIM_THRESHOLD, _MOST_BYTES)
