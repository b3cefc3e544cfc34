"""One start of this host's workers, in a run over several hosts."""

import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any

from tandem.errors import TandemError
from tandem.launch.agent import Job, Meeting, MeetingError, run_once
from tandem.launch.channel import Message
from tandem.launch.local import clear_pulses, read_standings, worker_environment
from tandem.launch.report import Reports
from tandem.process import python_command

__all__ = ["STUCK_S", "Start"]

STUCK_S = 10.0
"""How long workers that were killed may take to be gone."""


class Start:
    """The workers, from their start to their end."""

    def __init__(self, message: Message, *, environment: Mapping[str, str], pulses: Path, run: Path) -> None:
        """Prepare to do what the head's message says; what pulses earlier workers left is removed."""
        self.number: int = message["round"]
        self.asked: signal.Signals | None = None
        """The signal that the workers should be sent."""
        self.is_over = Event()
        self._was_ended = False
        self._message, self._environment, self._folder, self._run = message, environment, pulses, run
        self._has_pulses = clear_pulses(pulses)

    def carry_out(self) -> Message:
        """Run the workers to their end, and say how they ended."""
        try:
            return self._carry_out()
        finally:
            self.is_over.set()

    def _carry_out(self) -> Message:
        with Reports(self._folder) as reports:
            output = self._run / "log"
            ours = worker_environment(reports.address, workers=self._message["workers"], output=output)
            job = Job(
                command=python_command(*self._message["command"]),
                workers=self._message["workers"],
                environment={**ours, **self._environment},
                pulses=self._folder,
                meeting=Meeting(**self._message["meeting"]),
            )
            missed = ""
            failed: Mapping[int, int] = {}
            try:
                failed = run_once(job, asked=lambda: self.asked)
            except (MeetingError, TandemError) as error:
                missed = str(error)
            failures = [asdict(each) for each in reports.received().values()]
        return {"failed": failed, "failures": failures, "missed": missed, "was_ended": self._was_ended}

    def pulses(self) -> Mapping[str, Any] | None:
        """What the workers are doing; None where there is no room for pulses."""
        if not self._has_pulses:
            return None
        return {str(rank): asdict(each) for rank, each in read_standings(self._folder).items()}

    def end(self, grace_s: float) -> None:
        """Let the workers end by themselves for a while, so that they can say why; then end them."""
        if not self.is_over.wait(grace_s):
            self._was_ended = True
            self.asked = signal.SIGKILL
            if not self.is_over.wait(STUCK_S):
                # Still in the meeting, which cannot be broken off: this process is started anew.
                os._exit(1)
