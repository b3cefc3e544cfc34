"""The curves of a run as TensorBoard shows them, written from the run log without TensorBoard."""

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tandem.files import make_folder, open_append
from tandem.observe.sinks.curves import Curves, Point
from tandem.observe.sinks.event_file import (
    encode_restart,
    encode_scalars,
    encode_version,
    frame,
    read_times,
)
from tandem.runlog.event import TrainingStarted
from tandem.runlog.record import Record

__all__ = ["TensorBoardSink"]

NANO = 1_000_000_000
PREFIX, SUFFIX = "events.out.tfevents.", ".tandem"
_NUMBER = re.compile("[0-9]{1,15}")


class TensorBoardSink:
    """Writes the curves of rank 0 into a new file of the folder; what its older files hold is not written again.

    A disk that refuses never raises: it ends the writing, and `failure` says why.
    """

    def __init__(self, folder: Path) -> None:
        self.failure = ""
        self._folder = folder
        older = sorted(folder.glob(f"{PREFIX}*{SUFFIX}"))
        # A run that goes on is read from the beginning of its log.
        self._known_s = max((time_s for path in older for time_s in read_times(path)), default=0.0)
        self._path = folder / f"{PREFIX}{_next_number(older):010d}{SUFFIX}"
        self._size = 0
        self._buffer = bytearray()
        self._curves = Curves()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def apply(self, record: Record) -> None:
        """Take the next record; only those of rank 0 count."""
        time_s = record.time_ns / NANO
        if record.rank != 0 or time_s <= self._known_s or self.failure:
            return
        self._write_points(self._curves.take(record))
        if isinstance(record.event, TrainingStarted):
            self._write(time_s, encode_restart(time_s, step=record.event.step + 1))

    def flush(self) -> None:
        """Put what was taken on the disk, as whole records only."""
        if not self._buffer:
            return
        try:
            make_folder(self._folder, parents=True)
            with open_append(self._path, below=self._folder.parent) as file:
                _put(file.fileno(), self._buffer, at=self._size)
        except OSError as error:
            self.failure = f"TensorBoard's files are no longer written: {error.strerror}; the run log goes on"
        else:
            self._size += len(self._buffer)
        self._buffer.clear()

    def close(self) -> None:
        """Write what is left."""
        self._write_points(self._curves.rest())
        self.flush()

    def _write_points(self, points: Iterable[Point]) -> None:
        for point in points:
            time_s = point.time_ns / NANO
            self._write(time_s, encode_scalars(time_s, step=point.step, scalars=point.numbers))

    def _write(self, time_s: float, event: bytes) -> None:
        if not self._size and not self._buffer:
            self._buffer += frame(encode_version(time_s))
        self._buffer += frame(event)


def _put(descriptor: int, data: bytes | bytearray, *, at: int) -> None:
    """Append all of it, or nothing."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        # The file that is open, and not whatever has its name.
        with suppress(OSError):
            os.ftruncate(descriptor, at)
        raise
    finally:
        left.release()


def _next_number(older: list[Path]) -> int:
    """A number for the next file: readers take the files in the order of their names, whatever the clock did."""
    names = (path.name.removeprefix(PREFIX).removesuffix(SUFFIX) for path in older)
    return max([int(time.time()), *(int(name) + 1 for name in names if _NUMBER.fullmatch(name))])
