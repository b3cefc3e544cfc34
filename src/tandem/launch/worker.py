"""A worker's side: it ends with its supervisor, keeps its output in a file, and says why it failed."""

import ctypes
import faulthandler
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

from tandem.errors import TandemError
from tandem.files import make_folder, open_append
from tandem.launch.report import Kind, send_report
from tandem.parallel.pulse import PULSE, read_pulse

__all__ = [
    "OUTPUT",
    "PARENT",
    "REPORTS",
    "end_with_parent",
    "open_output",
    "output_file",
    "supervised",
    "tell_stopped",
]

PARENT = "TANDEM_PARENT"
"""Environment: id of the supervising process."""
OUTPUT = "TANDEM_OUTPUT"
"""Environment: folder for what the workers print."""
REPORTS = "TANDEM_REPORTS"
"""Environment: where to report a failure."""

_PR_SET_PDEATHSIG = 1


@contextmanager
def supervised() -> Iterator[None]:
    """Run the block as one of the workers that `Supervisor` started; the process ends with it, and reports an error."""
    rank = int(os.environ["RANK"])
    end_with_parent(int(os.environ[PARENT]))
    _redirect(output_file(Path(os.environ[OUTPUT]), rank))
    try:
        yield
    except TandemError as error:
        sys.stderr.write(f"error: {error}\n")
        send_report(os.environ[REPORTS], rank=rank, kind="sentence", message=str(error))
        _leave(1)
    except Exception as error:  # noqa: BLE001 - whatever it is, the supervisor must hear of it
        traceback.print_exc()
        kind: Kind = "peer" if _is_lost_peer(error) else "unexpected"
        place = _place() if kind == "peer" else ""
        send_report(os.environ[REPORTS], rank=rank, kind=kind, message=place + _in_a_line(error))
        _leave(1)
    _leave(0)


def tell_stopped(name: str) -> None:
    """Say that the work was left, not done, because of this signal."""
    send_report(os.environ[REPORTS], rank=int(os.environ["RANK"]), kind="stopped", message=name)


def output_file(folder: Path, rank: int) -> Path:
    """Where a rank's standard output and error go."""
    return folder / f"rank-{rank:05d}.txt"


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open such a file at its end: neither it nor its folder, which may be a stranger's, may be a link."""
    make_folder(path.parent, parents=True)
    with open_append(path, below=path.parent.parent) as file:
        yield file


def end_with_parent(parent: int) -> None:
    """Have the system kill this process as soon as its parent, which has this number, is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _redirect(path: Path) -> None:
    """Send both streams, of libraries too, to the end of the file."""
    try:
        with open_output(path) as file:
            _send_streams(file.fileno())
    except OSError:
        with Path(os.devnull).open("wb") as file:  # no place for what is printed is no reason to stop
            _send_streams(file.fileno())
    faulthandler.enable()
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    sys.stderr.write(f"started {now} on {platform.node()} as process {os.getpid()}\n")


def _send_streams(descriptor: int) -> None:
    for stream in (1, 2):
        os.dup2(descriptor, stream)


def _leave(code: int) -> NoReturn:
    # Without the interpreter's tidying up, which takes a second with torch, and for ever where a library waits for a
    # lost rank.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _is_lost_peer(error: Exception) -> bool:
    """Whether the error says that the connection to another rank broke; gloo has no type for it."""
    signs = ("gloo/transport/", "Connection closed by peer", "Connection reset by peer")
    by_text = isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)
    return by_text or type(error).__module__ == "torch.distributed"


def _place() -> str:
    """In which collective of which step this rank is, as far as its pulse tells."""
    pulse = read_pulse(Path(os.environ.get(PULSE, "")))
    if pulse is None or not pulse.collective:
        return ""
    return (
        f"in {pulse.collective} of step {pulse.step}: "
        if pulse.step
        else f"in {pulse.collective} at the start: "
    )


def _in_a_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
