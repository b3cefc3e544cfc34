"""Columns that grow at their end at small cost."""

from typing import Any

import numpy as np

__all__ = ["Growing"]

_SPARE = 8
"""An eighth more room than is needed: little is wasted, and what is copied in all stays a multiple of what is held."""


class Growing:
    """An array that is appended to along its last axis; views of it that were given out stay as they are."""

    __slots__ = ("_count", "_room")

    def __init__(self, dtype: Any, *, rows: tuple[int, ...] = ()) -> None:
        self._room: Any = np.empty((*rows, 0), dtype)
        self._count = 0

    @property
    def held(self) -> Any:
        """All that was appended, without a copy."""
        return self._room[..., : self._count]

    def append(self, values: Any) -> None:
        """Put values, which have the same rows, to the end."""
        start = self._count
        self.widen(start + values.shape[-1])
        self._room[..., start : self._count] = values

    def widen(self, count: int) -> None:
        """Make it that long; what is new is not set."""
        if count > self._room.shape[-1]:
            room = np.empty((*self._room.shape[:-1], count + count // _SPARE + _SPARE), self._room.dtype)
            room[..., : self._count] = self.held
            self._room = room
        self._count = count
