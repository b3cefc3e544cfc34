"""One start of this host's workers, in a run over several hosts."""

import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any

from tandem.launch.agent import Job, run_once
from tandem.launch.channel import Message
from tandem.launch.local import clear_pulses, read_standings, worker_environment
from tandem.launch.mesh import Mesh
from tandem.launch.report import Reports
from tandem.parallel.key_values import MESH, STORE
from tandem.process import python_command

__all__ = ["STUCK_S", "Start"]

STUCK_S = 10.0
"""How long workers that were killed may take to be gone."""


class Start:
    """The workers, from their start to their end."""

    def __init__(
        self,
        message: Message,
        *,
        environment: Mapping[str, str],
        pulses: Path,
        run: Path,
        mesh: Mesh | None = None,
    ) -> None:
        """Prepare to do what the head's message says; what pulses earlier workers left is removed.

        `mesh` is this host's end of it, closed after the start; None on one host, or on a trusted network.
        """
        self.number: int = message["round"]
        self.asked: signal.Signals | None = None
        """The signal that the workers should be sent."""
        self.is_over = Event()
        self._was_ended = False
        self._message, self._environment, self._folder, self._run = message, environment, pulses, run
        self._mesh = mesh
        self._has_pulses = clear_pulses(pulses)

    def carry_out(self) -> Message:
        """Run the workers to their end, and say how they ended."""
        try:
            return self._carry_out()
        finally:
            if self._mesh is not None:
                self._mesh.close()
            self.is_over.set()

    def _carry_out(self) -> Message:
        with Reports(self._folder) as reports:
            output = self._run / "log"
            ours = worker_environment(reports.address, workers=self._message["workers"], output=output)
            missed = ""
            failed: Mapping[int, int] = {}
            try:
                job = Job(
                    command=python_command(*self._message["command"]),
                    workers=self._message["workers"],
                    environment={**ours, **self._environment, **self._meeting()},
                    pulses=self._folder,
                    first_rank=self._message["first_rank"],
                    world_size=self._message["world_size"],
                )
                failed = run_once(job, asked=lambda: self.asked)
            except Exception as error:  # noqa: BLE001 - the head would wait for ever for a start that says nothing
                missed = str(error) or type(error).__name__
            failures = [asdict(each) for each in reports.received().values()]
        return {"failed": failed, "failures": failures, "missed": missed, "was_ended": self._was_ended}

    def _meeting(self) -> Mapping[str, str]:
        """What tells the workers where to meet."""
        meeting = self._message["meeting"]
        if self._mesh is not None:
            self._mesh.join(meeting)
            return {MESH: str(self._mesh.socket_path)}
        if meeting is None:
            return {STORE: str(self._folder / f"store-{self.number}")}
        return {"MASTER_ADDR": meeting["address"], "MASTER_PORT": str(meeting["port"])}

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
