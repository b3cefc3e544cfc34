"""Progress bars in the terminal; plain lines where there is none."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tandem.observe.visible import visible

__all__ = ["Bars"]


class _Amount(ProgressColumn):
    """How much is done, of how much, and how fast."""

    def render(self, task: Task) -> Text:
        unit = str(task.fields["unit"])
        if not unit:
            return Text("")
        done = _count(task.completed, unit)
        amount = done if task.total is None else f"{done}/{_count(task.total, unit)}"
        speed = task.finished_speed or task.speed
        return Text(amount + (f"  {_count(speed, unit)}/s" if speed else ""), style="progress.data.speed")


def _count(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / 1e6:,.1f} MB"
    return f"{value:,.0f} {unit}".rstrip()


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)


class Bars:
    """Bars for a person at a terminal; where the output goes to a file, one line when a piece of work ends."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(file=sys.stderr)
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            _Amount(),
            TimeElapsedColumn(),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    @contextmanager
    def bar(self, task: str, *, total: int | None = None, unit: str = "") -> Iterator[_Bar]:
        """Open a bar."""
        task = visible(task)
        number = self._progress.add_task(escape(task), total=total, unit=unit)
        begun = time.monotonic()
        yield _Bar(self._progress, number)
        done = self._progress.tasks[number].completed
        self._progress.update(number, total=max(done, 1), completed=max(done, 1))
        if not self.console.is_terminal:
            amount = f": {_count(done, unit)}" if unit else ""
            self.console.print(
                f"{task}{amount} ({time.monotonic() - begun:.1f} s)", highlight=False, markup=False
            )

    @contextmanager
    def share(self, task: str) -> Iterator[Callable[[float], None]]:
        """Open a bar for work that tells which share of it, up to 1, is done."""
        with self.bar(task, total=100, unit="%") as bar:
            done = 0

            def advance(share: float) -> None:
                nonlocal done
                now = max(done, int(100 * share))
                bar.advance(now - done)
                done = now

            yield advance

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(visible(text), highlight=False, markup=False)
