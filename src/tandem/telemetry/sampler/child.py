"""Starting the sampler beside a rank, and ending it."""

import platform
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tandem.process import python_command

__all__ = ["sampling"]

_END_S = 5.0


@contextmanager
def sampling(run: Path, *, every_s: float, gpus: Sequence[str]) -> Iterator[None]:
    """Inside the block this host is sampled, by a process that ends with this one, however that ends.

    Where the process cannot be started there are no samples, and nothing else is different.
    """
    process = _maybe_start(run, every_s=every_s, gpus=gpus)
    try:
        yield
    finally:
        if process is not None:
            _end(process)


def _maybe_start(run: Path, *, every_s: float, gpus: Sequence[str]) -> "subprocess.Popen[bytes] | None":
    command = python_command("tandem.telemetry.sampler", str(run), platform.node())
    command += [f"--every={every_s}", *(f"--gpu={each}" for each in gpus)]
    try:
        return subprocess.Popen(  # noqa: S603  (our own module; no shell)
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Let it write what it has; one that hangs, as on a dead disk, is killed."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
