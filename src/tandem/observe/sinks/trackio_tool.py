"""A run in Trackio."""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout

import trackio
from trackio.run import Run

from tandem.errors import TandemError
from tandem.observe.sinks.curves import Point
from tandem.observe.sinks.tool import COLUMNS, Ending, Opening, table_rows
from tandem.runlog.event import SampleTranslated

__all__ = ["TrackioTool", "open_run"]

_ELSEWHERE = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")


class TrackioTool:
    """Rows with their steps. Trackio only warns of what it loses: here that is an error."""

    def __init__(self, run: Run, warned: list[warnings.WarningMessage]) -> None:
        self._run, self._warned, self.id = run, warned, str(run.id)

    def log_points(self, points: Sequence[Point]) -> None:
        """Add to the curves."""
        for point in points:
            self._log(point.step, dict(point.numbers))

    def log_translations(self, step: int, samples: Sequence[SampleTranslated]) -> None:
        """As a table."""
        table = trackio.Table(columns=list(COLUMNS), data=table_rows(samples))
        self._log(step, {"translations": table})

    def log_events(self, step: int, lines: Sequence[tuple[str, str]]) -> None:
        """As a table."""
        table = trackio.Table(columns=["time", "event"], data=[list(line) for line in lines])
        self._log(step, {"events": table})

    def log_facts(self, step: int, facts: Mapping[str, str]) -> None:
        """As a table of two columns."""
        table = trackio.Table(columns=["fact", "value"], data=[list(fact) for fact in facts.items()])
        self._log(step, {"facts": table})

    def close(self, ending: Ending) -> None:
        """Wait until all is written; Trackio does not keep how a run ended."""
        del ending
        with redirect_stdout(sys.stderr):
            self._run.finish()  # type: ignore[no-untyped-call]
        self._refuse_loss()

    def _log(self, step: int, row: dict[str, object]) -> None:
        self._run.log(row, step=step)
        self._refuse_loss()

    def _refuse_loss(self) -> None:
        if self._warned:
            raise TandemError(str(self._warned[0].message))


def open_run(opening: Opening) -> TrackioTool:
    """Begin or go on, where Trackio's own settings say; without any, on this machine."""
    if opening.offline:
        for name in _ELSEWHERE:
            os.environ.pop(name, None)
    # For the life of this process: Trackio warns from threads of its own.
    warned = warnings.catch_warnings(record=True, category=UserWarning).__enter__()
    assert warned is not None
    with redirect_stdout(sys.stderr):
        run = trackio.init(
            project=opening.project,
            name=opening.name,
            config=dict(opening.config),
            resume="must" if opening.id else "never",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
    return TrackioTool(run, warned)
