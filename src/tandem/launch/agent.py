"""One start of this host's workers: processes that start together, are watched, and end together."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tandem.errors import TandemError
from tandem.launch.pace import GRACE_S
from tandem.parallel.pulse import PULSE

__all__ = ["Job", "run_once"]

LOOK_S = 0.2
"""How often the workers are looked at."""
EXIT_S = 10.0
"""How long a killed worker may take to be gone: a driver may hold it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every worker runs."""

    command: Sequence[str]
    workers: int
    environment: Mapping[str, str]
    pulses: Path
    """Folder for the workers' pulses, a file pulse-N for rank N."""
    first_rank: int = 0
    """Number of this host's first rank."""
    world_size: int = 0
    """Ranks on all hosts; 0: only those of this host."""


def run_once(job: Job, *, asked: Callable[[], signal.Signals | None]) -> Mapping[int, int]:
    """Start the workers and wait for their end: the exit code of each rank that ended by itself but not well.

    `asked` is the signal that they should be sent, each worker once.
    """
    workers: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for local_rank in range(job.workers):
            workers[job.first_rank + local_rank] = _start(job, local_rank)
        return _watch(workers, asked)
    except OSError as error:
        raise TandemError(f"Cannot start workers on this host: {error}; look at its limits.") from error
    finally:
        _end(workers)


def _start(job: Job, local_rank: int) -> "subprocess.Popen[bytes]":
    rank = job.first_rank + local_rank
    numbers = {
        "RANK": rank,
        "WORLD_SIZE": job.world_size or job.workers,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": job.workers,
    }
    environment = {
        **os.environ,
        **{name: str(number) for name, number in numbers.items()},
        **job.environment,
        PULSE: f"{job.pulses}/pulse-{rank}",
    }
    return subprocess.Popen(  # noqa: S603 - an argument list of our own
        job.command,
        env=environment,
        stdin=subprocess.DEVNULL,  # ours may be the channel to the head
        start_new_session=True,  # Ctrl-C is for us alone, and whatever a worker starts ends with it
    )


def _watch(
    workers: Mapping[int, "subprocess.Popen[bytes]"], asked: Callable[[], signal.Signals | None]
) -> Mapping[int, int]:
    sent: signal.Signals | None = None
    end_s = None
    while running := _running(workers):
        number = asked()
        if number is not None and number != sent:
            sent = number
            _send(running, number)
        if end_s is None and _failed(workers):
            # Let the others end by themselves, so that they can say why.
            end_s = time.monotonic() + GRACE_S
        if end_s is not None and time.monotonic() > end_s:
            break
        time.sleep(LOOK_S if end_s is None else LOOK_S / 4)
    return _failed(workers)


def _running(workers: Mapping[int, "subprocess.Popen[bytes]"]) -> "list[subprocess.Popen[bytes]]":
    return [worker for worker in workers.values() if worker.poll() is None]


def _failed(workers: Mapping[int, "subprocess.Popen[bytes]"]) -> dict[int, int]:
    """Exit codes, negative for a signal."""
    return {rank: code for rank, worker in workers.items() if (code := worker.poll())}


def _send(workers: "Sequence[subprocess.Popen[bytes]]", number: signal.Signals) -> None:
    for worker in workers:
        with suppress(ProcessLookupError):
            worker.send_signal(number)


def _end(workers: Mapping[int, "subprocess.Popen[bytes]"]) -> None:
    """Kill what is left, with all that it started."""
    for worker in _running(workers):
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
    for worker in workers.values():
        with suppress(subprocess.TimeoutExpired):
            worker.wait(EXIT_S)
