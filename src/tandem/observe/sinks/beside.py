"""Forwarding beside a run: a process of low priority that the run starts, and that nothing waits for."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tandem.files import make_folder, read_bounded
from tandem.observe.sinks.tool import TITLES
from tandem.process import python_command
from tandem.runlog.record import Record

__all__ = ["Beside", "start_beside"]

FINISH_S = 5.0


class Beside:
    """The process that forwards, as a sink of the display, which tells of its failure."""

    def __init__(self, tool: str, process: subprocess.Popen[bytes] | None, note: Path) -> None:
        self._tool, self.process, self._note = tool, process, note
        self.failure = "" if process is not None else f"forwarding to {TITLES[tool]} could not be started"

    def apply(self, record: Record) -> None:
        """Take nothing: the process reads the log itself."""

    def flush(self) -> None:
        """Look whether it goes on."""
        if not self.failure and self.process is not None and self.process.poll():
            self.failure = f"nothing is forwarded to {TITLES[self._tool]}: {self._reason()}"

    def finish(self) -> None:
        """Say that the run is over and wait; where it takes longer, the rest is forwarded while nobody waits."""
        if self.process is None:
            return
        with suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        try:
            self.process.wait(timeout=FINISH_S)
        except subprocess.TimeoutExpired:
            self.failure = (
                f"the rest is still being forwarded to {TITLES[self._tool]}, by process {self.process.pid}: see "
                f"{self._note}"
            )
        self.flush()

    def _reason(self) -> str:
        with suppress(OSError):
            lines = read_bounded(self._note).decode(errors="replace").split("\n")
            told = [line for line in lines if line.startswith("error: ")]
            if told:
                return told[-1].removeprefix("error: ")
        return f"see {self._note}"


def start_beside(run: Path, tool: str, *, command: Sequence[str] = python_command("tandem")) -> Beside:
    """Start `tandem forward` for the run; what it says is kept in the run's folder."""
    note = run / "forward" / f"{tool}.txt"
    try:
        make_folder(note.parent, parents=True)
        # Made anew: what lies there under this name may be a link.
        note.unlink(missing_ok=True)
        with note.open("xb") as output:
            # A session of its own: what the terminal sends to the run, as Ctrl-C, is not for it.
            process = subprocess.Popen(  # noqa: S603 - our own command, and no shell
                [*command, "forward", str(run.resolve()), "--to", tool, "--beside"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError:
        return Beside(tool, None, note)
    return Beside(tool, process, note)
