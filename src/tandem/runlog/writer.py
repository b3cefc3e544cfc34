"""Writing the run log from a background thread: the maker never waits, and never sees an error."""

import atexit
import os
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Protocol

from tandem.runlog.event import Event, EventsDropped
from tandem.runlog.layout import RunLayout
from tandem.runlog.logfile import LogFile
from tandem.runlog.record import Record, to_line

__all__ = ["FileLog", "NullLog", "RunLog", "open_host_log", "open_rank_log", "open_samples_log"]

_QUEUED = 10_000
_BATCH = 1_000
_FLUSH_S = 0.5
_CLOSE_S = 10.0

_Stamped = tuple[int, float, Event]


class RunLog(Protocol):
    """Where makers put the facts of a run."""

    def log(self, event: Event) -> None:
        """Take the event; never waits and never raises."""

    def close(self) -> None:
        """Write what is left."""


class NullLog:
    """A run log for nobody."""

    def log(self, event: Event) -> None:
        """Ignore."""

    def close(self) -> None:
        """Ignore."""


class FileLog:
    """Queues events for a thread that writes them; counts what cannot be kept, and logs the count."""

    def __init__(self, file: LogFile, *, rank: int | None = None, host: str | None = None) -> None:
        self._file, self._rank, self._host = file, rank, host
        self._pid = os.getpid()
        # SimpleQueue and RLock may be entered again by a signal handler that logs in the midst of log().
        self._queue: SimpleQueue[_Stamped | None] = SimpleQueue()
        self._lock = RLock()
        self._dropped, self._dropped_since_ns = 0, 0
        self._closed = False
        self._thread = Thread(target=self._work, name="tandem-runlog", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def log(self, event: Event) -> None:
        """Take the event; never waits and never raises."""
        if os.getpid() != self._pid:
            return
        stamped = (time.time_ns(), time.monotonic(), event)
        if self._closed or self._queue.qsize() >= _QUEUED:
            self._drop(1, since_ns=stamped[0])
        else:
            self._queue.put(stamped)

    def close(self) -> None:
        """Write what is left and flush it to the disk; gives up on a disk that hangs."""
        if os.getpid() != self._pid or self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join(_CLOSE_S)
        atexit.unregister(self.close)

    def _work(self) -> None:
        more = True
        while more:
            batch, more = self._collect()
            self._write(batch)
        self._write([])
        self._file.close()

    def _collect(self) -> tuple[list[_Stamped], bool]:
        """Wait for one flush interval, and return what came and whether more may come."""
        batch: list[_Stamped] = []
        end_s = time.monotonic() + _FLUSH_S
        while len(batch) < _BATCH:
            try:
                stamped = self._queue.get(timeout=max(0.0, end_s - time.monotonic()))
            except Empty:
                break
            if stamped is None:
                return batch, False
            batch.append(stamped)
        return batch, True

    def _write(self, batch: list[_Stamped]) -> None:
        dropped = self._take_dropped()
        if dropped is not None:
            batch = [(time.time_ns(), time.monotonic(), dropped), *batch]
        if not batch:
            return
        self._file.open()
        lines = self._encode(batch)
        written = self._file.append(lines)
        lost = len(lines) - written
        if dropped is not None and written == 0:
            self._drop(dropped.count + lost - 1, since_ns=dropped.since_ns)
        elif lost:
            self._drop(lost, since_ns=batch[written][0])

    def _encode(self, batch: list[_Stamped]) -> list[bytes]:
        lines: list[bytes] = []
        for time_ns, clock_s, event in batch:
            record = Record(
                time_ns=time_ns,
                clock_s=clock_s,
                rank=self._rank,
                host=self._host,
                sequence=self._file.sequence + len(lines),
                event=event,
            )
            try:
                lines.append(to_line(record))
            except Exception:  # noqa: BLE001 - whatever a maker put into an event, the thread lives on
                self._drop(1, since_ns=time_ns)
        return lines

    def _drop(self, count: int, *, since_ns: int) -> None:
        with self._lock:
            self._dropped_since_ns = min(since_ns, self._dropped_since_ns) if self._dropped else since_ns
            self._dropped += count

    def _take_dropped(self) -> EventsDropped | None:
        with self._lock:
            count, self._dropped = self._dropped, 0
            return EventsDropped(count=count, since_ns=self._dropped_since_ns) if count else None


def open_rank_log(run_folder: Path, rank: int) -> FileLog:
    """Log of one rank; a run that was stopped goes on in the same file."""
    return FileLog(LogFile(RunLayout(run_folder).rank_log(rank)), rank=rank)


def open_host_log(run_folder: Path, host: str) -> FileLog:
    """Log of whatever watches over the ranks of one host."""
    return FileLog(LogFile(RunLayout(run_folder).host_log(host)), host=host)


def open_samples_log(run_folder: Path, host: str) -> FileLog:
    """Log of the sampler of one host."""
    return FileLog(LogFile(RunLayout(run_folder).samples_log(host)), host=host)
