"""Columns that grow together at their end, at small cost."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tandem.observe.series.room import MEMORY, Room

__all__ = ["Table"]

_FEW = 8
"""Places to spare at the least."""
_ALIGNED = 64
"""Bytes; no column begins inside a line of the cache that another one ends in."""


class Table:
    """Arrays that are appended to along their last axis; views of them that were given out stay as they are."""

    __slots__ = ("_count", "_kinds", "_room", "_space", "_wide")

    def __init__(self, like: Mapping[str, Any], *, room: Room = MEMORY) -> None:
        """`like` has an array for each column, whose type and axes but for the last the column gets."""
        self._room = room
        self._kinds = {name: (each.dtype, each.shape[:-1]) for name, each in like.items()}
        self._count = self._space = 0
        self._wide = self._build(0)

    @property
    def held(self) -> dict[str, Any]:
        """All that was appended, by the names of the columns, without a copy."""
        return {name: column[..., : self._count] for name, column in self._wide.items()}

    def append(self, columns: Mapping[str, Any]) -> None:
        """Put as many values to the end of each column, in all its rows."""
        start = self._count
        self.widen(start + columns[next(iter(self._kinds))].shape[-1])
        for name, column in self._wide.items():
            column[..., start : self._count] = columns[name]

    def widen(self, count: int) -> None:
        """Make it that long; what is new is not set."""
        if count > self._space:
            space = count + count // self._room.spare + _FEW
            wide = self._build(space)
            for name, column in wide.items():
                column[..., : self._count] = self._wide[name][..., : self._count]
            self._wide, self._space = wide, space
        self._count = count

    def _build(self, space: int) -> dict[str, Any]:
        """All columns with so much space, one behind the other."""
        sizes = [space * prod(rows) * dtype.itemsize for dtype, rows in self._kinds.values()]
        starts = np.cumsum([0, *(-(-size // _ALIGNED) * _ALIGNED for size in sizes)]).tolist()
        held = self._room.build(starts[-1])
        return {
            name: held[start : start + size].view(dtype).reshape(*rows, space)
            for (name, (dtype, rows)), start, size in zip(self._kinds.items(), starts, sizes, strict=False)
        }
