"""Keeps the workers of a run going until they are done: starts them again when one is lost."""

import signal
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Protocol

from tandem.errors import TandemError
from tandem.launch.cause import Cause
from tandem.runlog.event import WorkersLost
from tandem.runlog.writer import RunLog

__all__ = ["Crew", "Supervisor"]


class Crew(Protocol):
    """All workers of a run, on this host or on several."""

    def attempt(self, asked: Callable[[], signal.Signals | None]) -> Cause | None:
        """Start them once and wait for their end: why they ended, None if that was well.

        `asked` is the signal that they should be sent, each worker once.
        """
        ...

    @property
    def newest_step(self) -> int | None:
        """The newest checkpoint on other hosts, as far as they said."""
        ...

    def close(self) -> None:
        """Let go of everything, when no other start will come."""
        ...


class Supervisor:
    """Runs a crew, in a thread of its own."""

    def __init__(self, crew: Crew, *, log: RunLog, restarts: int, progress: Callable[[], object]) -> None:
        """Lost workers are started again, at most `restarts` times in a row while `progress()` stays the same."""
        self._crew = crew
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
            try:
                self._run()
            finally:
                self._crew.close()
            self._end.set_result(None)
        except BaseException as error:  # noqa: BLE001 - the one who waits shall have it
            self._end.set_exception(error)

    def _run(self) -> None:
        attempt, losses, before = 0, 0, self._progress()
        while not self._asked:
            attempt += 1
            cause = self._crew.attempt(lambda: self._asked)
            if cause is not None and cause.is_final:
                raise TandemError(cause.reason)
            if cause is None or self._asked:
                return
            now = self._progress()
            losses = losses + 1 if now == before else 1
            before = now
            if losses > self._restarts:
                raise TandemError(_given_up(cause, losses))
            self._log.log(
                WorkersLost(
                    attempt=attempt,
                    exit_code=cause.exit_code,
                    rank=cause.rank,
                    reason=cause.reason,
                    host=cause.host,
                )
            )


def _given_up(cause: Cause, losses: int) -> str:
    often = "" if losses == 1 else f", {losses} times in a row without a new checkpoint"
    return f"{cause.who} was lost{often} ({cause.reason}): {cause.hint}."
