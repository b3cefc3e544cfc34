"""One append-only file of records that goes on where an earlier process, perhaps a killed one, stopped."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tandem.files import data_end, make_folder, require_plain
from tandem.runlog.record import from_line

__all__ = ["LogFile"]

_TAIL_BYTES = 1 << 16
_MOST_TAIL_BYTES = 1 << 24
_MOST_LINES = 10_000
"""Of those that are none, at the end: a disk that failed leaves few."""


class LogFile:
    """Appends whole lines with one system call; opens itself again after a failure."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self.sequence = 0
        """Number of the next record; right while the file is open."""

    def open(self) -> None:
        """Open to append, end a torn last line, find the next number; stays closed if the disk refuses."""
        if self._descriptor is not None:
            return
        with suppress(OSError):
            make_folder(self._path.parent, parents=True)
            # Neither into a link, which could point to any file of the user's, nor into a pipe.
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._descriptor = os.open(self._path, flags, 0o666)
            try:
                require_plain(self._path, self._descriptor)
                self.sequence, torn = _read_end(self._descriptor)
                if torn:
                    os.write(self._descriptor, b"\n")
            except OSError:
                self.close()

    def append(self, lines: Sequence[bytes]) -> int:
        """Write the lines and return how many are whole on disk; fewer means that the disk refused."""
        if self._descriptor is None or not lines:
            return 0
        data = b"".join(lines)
        try:
            size = os.write(self._descriptor, data)
        except OSError:
            size = 0
        whole = data.count(b"\n", 0, size)
        self.sequence += whole
        if size < len(data):
            self.close()
        return whole

    def close(self) -> None:
        """Flush to the disk and close; harmless when closed."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.fsync(self._descriptor)
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


def _read_end(descriptor: int) -> tuple[int, bool]:
    """Return the number for the next record and whether the last line lacks its end.

    No more of the end is looked through than a line may have: a stranger's log may hold anything, and any size of it.
    """
    size = data_end(descriptor)
    is_torn = size < os.fstat(descriptor).st_size or (size > 0 and os.pread(descriptor, 1, size - 1) != b"\n")
    window = _TAIL_BYTES
    while True:
        start = max(0, size - window)
        for line in islice(_last_lines(os.pread(descriptor, size - start, start)), _MOST_LINES):
            with suppress(ValueError):
                return from_line(line).sequence + 1, is_torn
        if not start or window >= _MOST_TAIL_BYTES:
            return 0, is_torn
        window = min(4 * window, _MOST_TAIL_BYTES)


def _last_lines(tail: bytes) -> Iterator[bytes]:
    """Lines that are not empty, the last one first."""
    end = len(tail)
    while end >= 0:
        begin = tail.rfind(b"\n", 0, end) + 1
        if begin < end:
            yield tail[begin:end]
        end = begin - 1
