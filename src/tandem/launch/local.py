"""The workers of this host alone."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tandem.data.workers import cores
from tandem.launch.agent import Job, run_once
from tandem.launch.cause import Cause, find_cause, local_naming, stalled
from tandem.launch.report import Reports
from tandem.launch.stall import Stall, Standing, Watchdog
from tandem.launch.worker import OUTPUT, PARENT, REPORTS
from tandem.parallel.key_values import STORE
from tandem.parallel.pulse import read_pulse

__all__ = ["LocalCrew", "clear_pulses", "read_standings", "worker_environment"]


LOOK_S = 1.0
"""How often the pulses are looked at."""


class LocalCrew:
    """Runs a command, which must run inside `launch.worker.supervised`, as the ranks of this host."""

    def __init__(self, command: Sequence[str], *, workers: int, output: Path) -> None:
        """So many workers, and the folder for what they print."""
        self._command, self._workers, self._output = command, workers, output

    def attempt(self, asked: Callable[[], signal.Signals | None]) -> Cause | None:
        """Start the workers once and wait for their end: why they ended, None if that was well."""
        with (
            tempfile.TemporaryDirectory(prefix="tandem-pulses-") as folder,
            Reports(Path(folder)) as reports,
        ):
            job = Job(
                command=self._command,
                workers=self._workers,
                environment={
                    **worker_environment(reports.address, workers=self._workers, output=self._output),
                    STORE: f"{folder}/store",
                },
                pulses=Path(folder),
            )
            look, naming = _Look(Path(folder)), local_naming(self._output)
            failed = run_once(job, asked=lambda: signal.SIGKILL if look.maybe_stall() else asked())
            if look.stall is not None and not asked():
                return stalled(look.stall, naming)
            return find_cause(failed, reports.received(), naming=naming)

    @property
    def newest_step(self) -> int | None:
        """There are no other hosts."""
        return None

    def close(self) -> None:
        """Nothing stays open between starts."""


class _Look:
    """Looks at the pulses now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._dog, self._looked_s = folder, Watchdog(time.monotonic()), 0.0
        self._has_pulses = clear_pulses(folder)
        self.stall: Stall | None = None

    def maybe_stall(self) -> Stall | None:
        now_s = time.monotonic()
        if not self._has_pulses:
            return None
        if now_s - self._looked_s > LOOK_S and self.stall is None:
            self._looked_s = now_s
            self._dog.take(read_standings(self._folder), now_s)
            self.stall = self._dog.maybe_stall(now_s)
        return self.stall


def worker_environment(reports: str, *, workers: int, output: Path) -> Mapping[str, str]:
    """What the workers that this process starts must know; `reports` is where they tell why they failed."""
    ours = {PARENT: str(os.getpid()), OUTPUT: str(output.resolve()), REPORTS: reports}
    threads = str(max(1, cores() // workers))
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads), **ours}


def clear_pulses(folder: Path) -> bool:
    """Remove what earlier workers left; gives whether there is room for pulses."""
    for path in folder.glob("pulse-*"):
        path.unlink(missing_ok=True)
    try:
        with (folder / "room").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 1 << 20)
        (folder / "room").unlink()
    except OSError:
        return False
    return True


def read_standings(folder: Path) -> Mapping[int, Standing]:
    """What the pulses in a folder say, by rank."""
    standings = {}
    for path in folder.glob("pulse-*"):
        pulse = read_pulse(path)
        if pulse is not None:
            standings[int(path.name.rpartition("-")[2])] = Standing(
                step=pulse.step,
                begun=pulse.begun,
                done=pulse.done,
                collective=pulse.collective,
                changed_s=pulse.changed_s,
            )
    return standings
