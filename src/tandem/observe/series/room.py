"""Where long columns lie: in memory, or in a file that the system holds in memory as long as there is some to spare."""

import mmap
import os
import tempfile
import threading
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

__all__ = ["MEMORY", "Disk", "Room"]

_LEAST_BYTES = 1 << 20
"""Less than that is not worth a file."""
_MOST_FILES = 4096


_ALL_MAPPED: "WeakSet[mmap.mmap]" = WeakSet()
"""Of the whole process: each has a file open."""


class Room(Protocol):
    """Gives out bytes that are not set."""

    @property
    def spare(self) -> int:
        """What grows takes more than it needs, by one part of so many: the less it wastes, the more it copies."""
        ...

    def build(self, size: int) -> Any:
        """An array of so many bytes, which are given back with the last view of it."""
        ...


class _Memory:
    """The memory of the process."""

    spare = 8

    def build(self, size: int) -> Any:
        return np.empty(size, np.uint8)


MEMORY: Room = _Memory()


class Disk:
    """Files without a name, mapped: they are gone with the process however it ends.

    Where there is no place for a file, memory is taken.
    """

    spare = 2
    """What is not written to takes no memory, if the disk is one."""

    def __init__(self, folder: Path | None = None, *, least_bytes: int = _LEAST_BYTES) -> None:
        self._folder = folder
        self._least_bytes = least_bytes
        self._mapped: WeakSet[mmap.mmap] = WeakSet()
        self._lock = threading.Lock()

    def build(self, size: int) -> Any:
        """An array of so many bytes in a file of its own, but for small ones."""
        if size < self._least_bytes:
            return MEMORY.build(size)
        try:
            if len(_ALL_MAPPED) >= _most_files():
                return MEMORY.build(size)
            with tempfile.TemporaryFile(dir=self._folder or _folder()) as file:
                # A hole that a full disk could not fill would end the process when it is written to.
                os.posix_fallocate(file.fileno(), 0, size)
                mapped = mmap.mmap(file.fileno(), size)
        except (OSError, AttributeError, ImportError):
            return MEMORY.build(size)
        with self._lock:
            self._mapped.add(mapped)
        _ALL_MAPPED.add(mapped)
        return np.frombuffer(mapped, np.uint8)

    def let_go(self) -> bool:
        """Leave the pages to the system, which has them at hand for the next look as long as it can.

        Returns whether there were any.
        """
        with self._lock:
            mapped = list(self._mapped)
        for each in mapped:
            each.madvise(mmap.MADV_DONTNEED)
        return bool(mapped)


def _most_files() -> int:
    """At most half of what the process may have open: connections and logs need some too."""
    import resource  # noqa: PLC0415  (not on every system on which logs are read)

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_FILES if allowed == resource.RLIM_INFINITY else min(allowed // 2, _MOST_FILES)


def _folder() -> Path:
    """Meant for large files: the usual one for small ones often is memory itself."""
    large = Path("/var/tmp")  # noqa: S108 - files in it have no name
    is_fit = "TMPDIR" not in os.environ and large.is_dir() and os.access(large, os.W_OK)
    return large if is_fit else Path(tempfile.gettempdir())
