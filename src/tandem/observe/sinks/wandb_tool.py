"""A run in Weights & Biases."""

from collections.abc import Mapping, Sequence

import wandb

from tandem.observe.sinks.curves import Point
from tandem.observe.sinks.tool import COLUMNS, Ending, Opening, table_rows
from tandem.runlog.event import SampleTranslated

__all__ = ["WandbTool", "open_run"]

NANO = 1_000_000_000
INIT_S = 30.0


class WandbTool:
    """Rows of its history, one a step. It drops what is older than its last row: such goes into that row."""

    def __init__(self, run: wandb.Run) -> None:
        self._run, self.id = run, run.id
        self._step = run.step

    def log_points(self, points: Sequence[Point]) -> None:
        """Add to the curves, with the times of the run rather than of now."""
        for point in points:
            self._log(point.step, {**point.numbers, "_timestamp": point.time_ns / NANO})

    def log_translations(self, step: int, samples: Sequence[SampleTranslated]) -> None:
        """As a table."""
        self._log_table("translations", COLUMNS, table_rows(samples), step=step)

    def log_events(self, step: int, lines: Sequence[tuple[str, str]]) -> None:
        """As a table."""
        self._log_table("events", ("time", "event"), [list(line) for line in lines], step=step)

    def log_facts(self, step: int, facts: Mapping[str, str]) -> None:
        """Into the summary."""
        del step
        self._run.summary.update(dict(facts))

    def close(self, ending: Ending) -> None:
        """Wait until all is on its way."""
        self._run.finish(exit_code=ending == "badly")

    def _log_table(self, name: str, columns: Sequence[str], rows: list[list[str]], *, step: int) -> None:
        self._log(step, {name: wandb.Table(columns=list(columns), data=rows)})

    def _log(self, step: int, row: dict[str, object]) -> None:
        self._step = max(self._step, step)
        self._run.log(row, step=self._step)


def open_run(opening: Opening) -> WandbTool:
    """Begin or go on; its files lie in the run's folder."""
    settings = wandb.Settings(
        mode="offline" if opening.offline else "online",
        # The run log knows the hosts of the run; wandb knows this process.
        x_disable_stats=True,
        x_disable_meta=True,
        x_save_requirements=False,
        disable_git=True,
        disable_code=True,
        console="off",
        silent=True,
        init_timeout=INIT_S,
    )
    run = wandb.init(
        project=opening.project,
        name=opening.name,
        id=opening.id or None,
        resume="allow" if opening.id and not opening.offline else None,
        dir=opening.folder,
        config=dict(opening.config),
        settings=settings,
    )
    return WandbTool(run)
