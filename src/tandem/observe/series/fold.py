"""Reads the logs of a run into a series: all ranks and hosts on one clock, once for each step that stands."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tandem.errors import TandemError
from tandem.observe.series.assemble import Assembly
from tandem.observe.series.columns import Series
from tandem.observe.series.part import Part, read_part
from tandem.process import SafeChildren
from tandem.runlog.layout import RunLayout

__all__ = ["find_logs", "maybe_leader", "read_series"]

_PLAIN_BYTES = 48 << 20
"""Up to here, starting processes takes longer than they save."""


def read_series(run: Path, *, on_progress: Callable[[float], None] | None = None) -> Series:
    """Fold the logs of a run, finished, killed or going on; `on_progress` hears the share that is read.

    Raises TandemError where there is no log. Lines that cannot be read are counted and left out.
    """
    paths = find_logs(run)
    sizes = {path: _size(path) for path in paths}
    # The leader comes first, since the others wait for it; then the largest, so that all processes end together.
    leader = maybe_leader(paths)
    paths.sort(key=lambda path: (path != leader, -sizes[path]))
    done = _Done(sum(sizes.values()), on_progress)
    workers = min(_cores(), len(paths))
    is_small = sum(sizes.values()) <= _PLAIN_BYTES
    parts = (
        (read_part(path, path == leader, done.add) for path in paths)
        if is_small or workers == 1
        else _read_beside(paths, leader, workers=workers, on_part=lambda path: done.add(sizes[path]))
    )
    return Assembly(run).series(parts, leader=leader.name if leader else "", lets_go=True)


def find_logs(run: Path) -> list[Path]:
    """The files of a run's log, in order of their names; raises TandemError where there is none."""
    paths = sorted(RunLayout(run).log.glob("*.jsonl"))
    if not paths:
        raise TandemError(f"There is no run log in {RunLayout(run).log}: check the name of the run.")
    return paths


def maybe_leader(paths: Iterable[Path]) -> Path | None:
    """The file that speaks for the run, among those in order of their names: that of the first rank which has one."""
    return next((path for path in paths if path.name.startswith("rank-")), None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _cores() -> int:
    # Logs are also read on machines that cannot say what this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Done:
    """Tells how much is read."""

    def __init__(self, total: int, on_progress: Callable[[float], None] | None) -> None:
        self._total, self._on_progress = max(1, total), on_progress
        self._done = 0

    def add(self, count: int) -> None:
        self._done += count
        if self._on_progress is not None:
            self._on_progress(min(1.0, self._done / self._total))


def _read_beside(
    paths: Sequence[Path], leader: Path | None, *, workers: int, on_part: Callable[[Path], None]
) -> Iterator[Part]:
    """Read files in processes of their own; yields each as it is done, so that none is held twice for long."""
    # Started anew: a fork would inherit the threads of a progress bar, and their locks.
    context = multiprocessing.get_context("spawn")
    with SafeChildren():
        # Its locks start a process already, which tracks them.
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start)
    with pool:
        try:
            with SafeChildren():
                futures = {pool.submit(read_part, path, path == leader): path for path in paths}
            for future in as_completed(list(futures)):
                on_part(futures.pop(future))
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _start() -> None:
    """Leave an interrupt to the parent, and end when it is gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
