"""Keeps a run's report up to date while it goes on: a process of low priority that nothing waits for."""

# Imports of what is heavy wait until a report is made: until then this process is next to nothing.

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.files import make_folder
from tandem.process import python_command
from tandem.runlog.layout import RunLayout

__all__ = ["Keeper", "keep", "start_keeper"]

FIRST_S = 10.0
"""After so long there is a first report: a run that dies young leaves one too."""
EVERY_S = 60.0
REST = 100.0
"""Seconds of rest for a second of work: under one hundredth of one core."""
LOOK_S = 2.0
FINISH_S = 15.0
NOTE = "keeper.txt"
LOWEST = 19


@dataclass(frozen=True, slots=True)
class Keeper:
    """The process that keeps a report up to date."""

    process: subprocess.Popen[bytes] | None
    """None where it could not be started: a run goes on without."""

    def finish(self, at_most_s: float = FINISH_S) -> bool:
        """Ask for the last report and wait for it; where it takes longer, it is finished while nobody waits."""
        if self.process is None:
            return False
        with suppress(OSError, ValueError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        try:
            return self.process.wait(timeout=at_most_s) == 0
        except subprocess.TimeoutExpired:
            return False


def start_keeper(run: Path) -> Keeper:
    """Start the process; it ends by itself when this one does, or is gone."""
    command = python_command("tandem.observe.report.keep", str(run.resolve()))
    try:
        # A session of its own: what the terminal sends to the run, as Ctrl-C, is not for it.
        process = subprocess.Popen(  # noqa: S603 - our own module, and no shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return Keeper(None)
    return Keeper(process)


def keep(run: Path, *, wait: Callable[[float], bool], write: Callable[[Path], None]) -> None:
    """Write the report again and again; `wait(seconds)` says whether the run is over. Nothing is ever raised."""
    rest_s = FIRST_S
    is_over = False
    while not is_over:
        is_over = wait(rest_s)
        begun = _worked_s()
        try:
            write(run)
            _forget(run)
        except Exception as error:  # noqa: BLE001 - a report that fails must not disturb anything
            _note(run, error)
        rest_s = max(EVERY_S, REST * (_worked_s() - begun))


def _worked_s() -> float:
    """Processor seconds of this process and of those that it started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _note(run: Path, error: Exception) -> None:
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    what = " ".join(str(error).split()) or type(error).__name__
    with suppress(OSError, TandemError):
        folder = RunLayout(run).report
        make_folder(folder)
        text = f"{when}: the report could not be written: {what}\n"
        write_atomic(folder / NOTE, text.encode(errors="backslashreplace"))


def _forget(run: Path) -> None:
    """What failed before is over."""
    with suppress(OSError):
        (RunLayout(run).report / NOTE).unlink(missing_ok=True)


def _write(run: Path) -> None:
    from tandem.observe.report.files import write_files  # noqa: PLC0415
    from tandem.observe.report.gather import read_report  # noqa: PLC0415

    write_files(read_report(run), run)


class _Patience:
    """Waits for time to pass, or for the end of whoever started this process."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._parent = os.getppid()

    def __call__(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            readable, _, _ = select.select([self._stream], [], [], min(left, LOOK_S))
            if readable and not os.read(self._stream.fileno(), 4096):
                return True
            # A process that was forked from the run may hold the other end open long after the run is gone.
            if os.getppid() != self._parent:
                return True
        return False


def _step_back() -> None:
    """Leave processor and disk to everybody else."""
    import psutil  # noqa: PLC0415

    os.nice(LOWEST)
    with suppress(OSError, AttributeError, psutil.Error):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)


def main() -> None:
    """Keep the report of the run that the command line names."""
    with suppress(OSError):
        _step_back()
    keep(Path(sys.argv[1]), wait=_Patience(sys.stdin.buffer), write=_write)


if __name__ == "__main__":
    main()
