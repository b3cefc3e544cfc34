"""Free memory goes back to the system, where its library would keep the more of it the longer a run is."""

import ctypes
from contextlib import suppress
from functools import cache
from typing import Any

__all__ = ["give_back", "share_memory"]

_ARENA_MAX = -8
"""What glibc's `mallopt` calls it."""


def share_memory() -> None:
    """Let all threads that are still to come take memory from one place: only that one can be given back whole."""
    with suppress(AttributeError):
        _library().mallopt(_ARENA_MAX, 1)


def give_back() -> None:
    """Give back what is free, where the library can be told so: a millisecond."""
    with suppress(AttributeError):
        _library().malloc_trim(ctypes.c_size_t(0))


@cache
def _library() -> Any:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # not everywhere is the process itself a library
        return None
