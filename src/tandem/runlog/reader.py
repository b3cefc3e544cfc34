"""Reading a run log, live or dead: all writers merged in time order, damage counted and never fatal."""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

from tandem.errors import TandemError
from tandem.files import next_data
from tandem.runlog.event import Unknown
from tandem.runlog.layout import RunLayout, open_log
from tandem.runlog.record import Record, from_line

__all__ = ["ReadReport", "follow", "read_records"]

_LONGEST_LINE = 1 << 24
_HEAD_BYTES = 256

IsWanted: TypeAlias = Callable[[Path, bytes], bool]


@dataclass(slots=True, kw_only=True)
class ReadReport:
    """What a reader met; filled while the records are read."""

    records: int = 0
    damaged: int = 0
    """Lines that are not records: torn by a kill, or spoilt on disk."""
    unfinished: int = 0
    """Files that end inside a line."""
    unknown: int = 0
    """Records of events that this version does not know."""


def _is_anything(_path: Path, _line: bytes) -> bool:
    return True


class _Tail:
    """A place in one file, from which the next whole lines are read."""

    def __init__(self, path: Path, report: ReadReport, is_wanted: IsWanted, *, offset: int = 0) -> None:
        self._path, self._report, self._is_wanted = path, report, is_wanted
        self._head = b""
        self.is_unfinished = False
        """Whether the file goes on after its last whole line."""
        self._rewind()
        self._offset = offset

    def _rewind(self) -> None:
        self._offset, self._inside_long = 0, False

    def records(self) -> Iterator[Record]:
        """Yield what is new since the last call."""
        for line in self._lines():
            try:
                record = from_line(line)
            except ValueError:
                self._report.damaged += 1
                continue
            self._report.records += 1
            self._report.unknown += isinstance(record.event, Unknown)
            yield record

    def _lines(self) -> Iterator[bytes]:
        try:
            file = open_log(self._path)
        except FileNotFoundError:
            return
        with file:
            # The head tells a replaced file from one that grew, also where a copying tool renews the inode.
            head = file.read(_HEAD_BYTES)
            if not head.startswith(self._head) or file.seek(0, 2) < self._offset:
                self._rewind()
            self._head = head
            self.is_unfinished = False
            file.seek(self._offset)
            yield from self._whole_lines(file)

    def _whole_lines(self, file: BinaryIO) -> Iterator[bytes]:
        self._pass_hole(file)
        while line := file.readline(_LONGEST_LINE):
            ended = line.endswith(b"\n")
            if not ended and len(line) < _LONGEST_LINE:
                self.is_unfinished = True
                return
            self._offset += len(line)
            skipped = self._inside_long or not ended or line == b"\n"
            self._report.damaged += not ended and not self._inside_long
            self._inside_long = not ended
            if not ended:
                self._pass_hole(file)
            if not skipped and self._is_wanted(self._path, line):
                yield line

    def _pass_hole(self, file: BinaryIO) -> None:
        """Go on behind a hole, in which there is no line."""
        if (place := next_data(file, self._offset)) > self._offset:
            self._report.damaged += not self._inside_long
            self._offset, self._inside_long = place, True
            file.seek(place)


def read_records(run_folder: Path, report: ReadReport | None = None) -> Iterator[Record]:
    """Stream every record of a run in time order; each file keeps its own order, whatever its clock did."""
    report = report or ReadReport()
    paths = _log_files(run_folder)
    if not paths:
        raise TandemError(f"There is no run log in {RunLayout(run_folder).log}: check the name of the run.")
    tails = [_Tail(path, report, _is_anything) for path in paths]
    return _read_once(tails, report)


def follow(
    run_folder: Path,
    stop: Callable[[], bool],
    *,
    wait: Callable[[], None] = lambda: time.sleep(0.5),
    report: ReadReport | None = None,
    is_wanted: IsWanted = _is_anything,
    offsets: Mapping[Path, int] = MappingProxyType({}),
) -> Iterator[Record]:
    """Yield the records of a live run as they come, until `stop()`; calls `wait` when it has caught up.

    Lines of which `is_wanted` says no, given their file, are passed over unread and uncounted. A file of `offsets` is
    read from that byte on, where a line begins; one that is shorter was replaced, and is read whole.
    """
    report = report or ReadReport()
    tails: dict[Path, _Tail] = {}
    while True:
        last = stop()
        for path in _log_files(run_folder):
            if path not in tails:
                tails[path] = _Tail(path, report, is_wanted, offset=offsets.get(path, 0))
        yield from _merge(tails.values())
        if last:
            return
        wait()


def _read_once(tails: list[_Tail], report: ReadReport) -> Iterator[Record]:
    yield from _merge(tails)
    report.unfinished = sum(tail.is_unfinished for tail in tails)


def _merge(tails: Iterable[_Tail]) -> Iterator[Record]:
    # Where a clock went back, its file is not sorted; merging then still keeps the order within the file.
    return heapq.merge(*(tail.records() for tail in tails), key=attrgetter("time_ns"))


def _log_files(run_folder: Path) -> list[Path]:
    return sorted(RunLayout(run_folder).log.glob("*.jsonl"))
