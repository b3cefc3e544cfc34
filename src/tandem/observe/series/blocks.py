"""Reads a file of a run log on from where it was, in blocks of whole lines, also while it is being written."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tandem.files import next_data
from tandem.runlog.layout import open_log

__all__ = ["Tail"]

_LONGEST_LINE = 1 << 24
_HEAD_BYTES = 256


class Tail:
    """A place in one file, up to which whole lines were read."""

    def __init__(self, path: Path, *, on_anew: Callable[[], None] = lambda: None) -> None:
        self._path, self._on_anew = path, on_anew
        self._head = b""
        self.passed_bytes = 0
        """Bytes that were read in all, those of a file that was replaced included."""
        self._rewind()

    def _rewind(self) -> None:
        self.offset = 0
        """Where the first line begins that was not read."""
        self._seen = 0
        self._is_inside_long = False

    def behind_bytes(self, size: int) -> int:
        """How much of a file of that size was not looked at; a last line without its end was."""
        return max(0, size - max(self.offset, self._seen))

    def blocks(self, *, size: int, at_most_bytes: int | None = None) -> Iterator[tuple[bytes, int]]:
        """Yield whole lines, and how many lines were passed over because no record is that long.

        What follows the last line feed is not there yet, and is left for the next call. Of a file that was replaced or
        cut, `on_anew` is told before it is read from the start. A file that is gone has nothing new.
        """
        try:
            file = open_log(self._path)
        except FileNotFoundError:
            return
        with file:
            self._find_place(file)
            stop = None if at_most_bytes is None else self.offset + at_most_bytes
            while stop is None or self.offset < stop:
                if (place := next_data(file, self.offset)) > self.offset:
                    yield b"", self._pass_over(place)
                    file.seek(place)
                    continue
                data = file.read(size if stop is None else min(size, stop - self.offset))
                # To the end of the line at hand, so that nothing is kept for the next block.
                data += file.readline(_LONGEST_LINE) if data and data[-1:] != b"\n" else b""
                block, lost = self._take(data)
                if block or lost:
                    yield block, lost
                if not data or self._seen > self.offset:
                    return

    def _find_place(self, file: BinaryIO) -> None:
        # The head tells a replaced file from one that grew, also where a copying tool renews the inode.
        head = file.read(_HEAD_BYTES)
        if not head.startswith(self._head) or file.seek(0, 2) < self.offset:
            self._rewind()
            self._on_anew()
        self._head = head
        file.seek(self.offset)

    def _pass_over(self, place: int) -> int:
        """Go on behind a hole, in which there is no line; returns how many lines that is."""
        self._move(place - self.offset)
        self._seen = self.offset
        was_inside, self._is_inside_long = self._is_inside_long, True
        return int(not was_inside)

    def _take(self, data: bytes) -> tuple[bytes, int]:
        """The whole lines of what was read from the place on, which moves behind them."""
        start = data.find(b"\n") + 1 if self._is_inside_long else 0
        if self._is_inside_long and not start:
            self._move(len(data))
            return b"", 0
        end = data.rfind(b"\n") + 1
        stop = max(start, self._without_long(data, end))
        lost = int(stop < end)
        self._is_inside_long = len(data) - end >= _LONGEST_LINE
        self._move(len(data) if self._is_inside_long else end)
        self._seen = self.offset + (0 if self._is_inside_long else len(data) - end)
        return data[start:stop], lost + self._is_inside_long

    def _without_long(self, data: bytes, end: int) -> int:
        """Where the lines end that may be records: only the last can be too long, as blocks are shorter."""
        last = data.rfind(b"\n", 0, max(0, end - 1)) + 1
        return last if end - last > _LONGEST_LINE else end

    def _move(self, count: int) -> None:
        self.offset += count
        self.passed_bytes += count
