"""Runs commands on a number of cores, and takes their seconds and the peak memory of all their processes."""

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

__all__ = ["Stages", "Took", "all_cores", "peak_memory_bytes", "time_stages"]

Stages: TypeAlias = Sequence[Sequence[Sequence[str]]]
"""Stages run one after the other; the commands of a stage run side by side."""

_POLL_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36
_LIMIT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What one run took: wall seconds, and processor seconds of all its processes."""

    wall_s: float
    cpu_s: float


def all_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def time_stages(stages: Stages, *, cores: int, folder: Path) -> Took:
    """Run `stages` in `folder`, held to `cores` cores, undisturbed; SystemExit where a command fails."""
    # What the run before left in the page cache must not be written to disk on this run's time.
    os.sync()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    cpu_s, start = _children_cpu_s(), time.perf_counter()
    _run(stages, cores=cores, folder=folder, wait=_wait)
    wall_s = time.perf_counter() - start
    _reap()
    return Took(wall_s=wall_s, cpu_s=_children_cpu_s() - cpu_s)


def peak_memory_bytes(stages: Stages, *, cores: int, folder: Path) -> int:
    """Run `stages` as time_stages does, and return the highest sum of PSS over all their processes."""
    peak = 0

    def watch(process: subprocess.Popen[bytes]) -> None:
        nonlocal peak
        deadline = time.monotonic() + _LIMIT_S
        while process.poll() is None and time.monotonic() < deadline:
            peak = max(peak, _descendants_pss_bytes())
            time.sleep(_POLL_S)
        _wait(process)

    _run(stages, cores=cores, folder=folder, wait=watch)
    return peak


def _run(
    stages: Stages, *, cores: int, folder: Path, wait: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    for number, commands in enumerate(stages):
        logs = [folder / f"log-{number}-{place}" for place in range(len(commands))]
        processes: list[subprocess.Popen[bytes]] = []
        try:
            with _held_to(cores):
                processes += [_start(*pair, folder=folder) for pair in zip(commands, logs, strict=True)]
            for process in processes:
                wait(process)
        finally:
            for process in processes:
                _end(process)
        for process, command, log in zip(processes, commands, logs, strict=True):
            if process.returncode:
                raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text(errors='replace')[-2000:]}")


def _start(command: Sequence[str], log: Path, *, folder: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{process.args!r} did not end within {_LIMIT_S:.0f} s") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _held_to(cores: int) -> Iterator[None]:
    """Start processes on the last `cores` cores only: children inherit what their parent may use."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[-cores:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _reap() -> None:
    """Wait for processes that a command left to end by themselves, so that their seconds are counted too."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _descendants_pss_bytes() -> int:
    """Sum proportional set sizes: a page that n processes share counts as one nth in each of them."""
    parents = {int(path.name): _parent(path) for path in Path("/proc").glob("[0-9]*")}
    found = {os.getpid()}
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return sum(_pss_bytes(pid) for pid in found - {os.getpid()})


def _parent(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _pss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
