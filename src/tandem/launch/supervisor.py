"""Keeps the workers of this host running until they are done: starts them again when one is lost."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from tandem.data.workers import cores
from tandem.errors import TandemError
from tandem.launch.agent import Job, run_once
from tandem.launch.cause import Cause, find_cause
from tandem.launch.report import Reports
from tandem.launch.worker import OUTPUT, PARENT, REPORTS, output_file
from tandem.runlog.event import WorkersLost
from tandem.runlog.writer import RunLog

__all__ = ["Supervisor"]


class Supervisor:
    """Runs a command as the ranks of one host, in a thread of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        workers: int,
        output: Path,
        log: RunLog,
        restarts: int,
        progress: Callable[[], object],
    ) -> None:
        """Prepare to run `command`, which must run inside `launch.worker.supervised`, on so many workers.

        Lost workers are started again, at most `restarts` times in a row while `progress()` stays the same.
        """
        self._command, self._workers, self._output = command, workers, output
        self._log, self._restarts, self._progress = log, restarts, progress
        self._asked: signal.Signals | None = None
        self._end: Future[None] = Future()

    def start(self) -> None:
        """Start the workers."""
        # Not a daemon: were this process to end early, it would still wait for its workers.
        Thread(target=self._work, name="tandem-supervisor").start()

    @property
    def is_done(self) -> bool:
        """Whether no worker is left, well or not."""
        return self._end.done()

    def stop(self) -> None:
        """Ask the workers, once, to save and end; those not yet started never are. Safe in a signal handler."""
        self._asked = self._asked or signal.SIGTERM

    def kill(self) -> None:
        """End the workers at once."""
        self._asked = signal.SIGKILL

    def wait(self) -> None:
        """Wait for the end of all workers; TandemError has the first cause if they failed."""
        self._end.result()

    def _work(self) -> None:
        try:
            self._run()
            self._end.set_result(None)
        except BaseException as error:  # noqa: BLE001 - the one who waits shall have it
            self._end.set_exception(error)

    def _run(self) -> None:
        attempt, losses, before = 0, 0, self._progress()
        while not self._asked:
            attempt += 1
            cause = self._attempt()
            if cause is not None and cause.is_final:
                raise TandemError(cause.reason)
            if cause is None or self._asked:
                return
            now = self._progress()
            losses = losses + 1 if now == before else 1
            before = now
            if losses > self._restarts:
                raise TandemError(self._given_up(cause, losses))
            self._log.log(
                WorkersLost(attempt=attempt, exit_code=cause.exit_code, rank=cause.rank, reason=cause.reason)
            )

    def _attempt(self) -> Cause | None:
        with Reports() as reports:
            environment = self._environment(reports.address)
            job = Job(command=self._command, workers=self._workers, environment=environment)
            failed = run_once(job, asked=lambda: self._asked)
            return find_cause(failed, reports.received(), output=self._output)

    def _environment(self, address: str) -> Mapping[str, str]:
        ours = {PARENT: str(os.getpid()), OUTPUT: str(self._output.resolve()), REPORTS: address}
        threads = str(max(1, cores() // self._workers))
        return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads), **ours}

    def _given_up(self, cause: Cause, losses: int) -> str:
        often = "" if losses == 1 else f", {losses} times in a row without a new checkpoint"
        where = output_file(self._output, cause.rank)
        return f"Rank {cause.rank} was lost{often} ({cause.reason}): what it printed is in {where}."
