"""The folder of an imported run: made whole, or not at all, and never over another run."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tandem.errors import TandemError
from tandem.files import explaining_full_disk
from tandem.runlog.event import Event
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

__all__ = ["refuse_existing", "write_run"]

_NANO = 1_000_000_000
_LATEST_NS = 1 << 62


def refuse_existing(run: Path) -> None:
    """Raise where the folder is there already."""
    if run.exists() or run.is_symlink():
        raise TandemError(f"{run} exists already: name another folder with --run.")


def write_run(run: Path, events: Iterable[tuple[float, Event]], *, begun_s: float) -> None:
    """Write a run log of one rank; each event comes with its seconds since the beginning."""
    refuse_existing(run)
    with _beside(run) as partial, explaining_full_disk(run):
        path = RunLayout(partial).rank_log(0)
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.writelines(to_line(record) for record in _records(events, begun_s=begun_s))
            file.flush()
            os.fsync(file.fileno())
        refuse_existing(run)
        partial.rename(run)


def _records(events: Iterable[tuple[float, Event]], *, begun_s: float) -> Iterator[Record]:
    for sequence, (time_s, event) in enumerate(events):
        time_ns = round((begun_s + time_s) * _NANO)
        if not 0 <= time_ns < _LATEST_NS:
            raise TandemError("The times in the files make no sense: check the log, or give another --start.")
        yield Record(time_ns=time_ns, clock_s=time_s, rank=0, sequence=sequence, event=event)


@contextmanager
def _beside(run: Path) -> Iterator[Path]:
    """A folder to fill, which is gone afterwards unless it was renamed."""
    run.parent.mkdir(parents=True, exist_ok=True)
    partial = run.with_name(f".{run.name}.importing-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
