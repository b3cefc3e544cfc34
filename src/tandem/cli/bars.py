"""Progress bars in the terminal; plain lines where there is none."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import Progress, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tandem.observe.visible import visible
from tandem.observe.watch.columns import GAP, fitting, shortened

__all__ = ["Bars"]

BAR_CELLS, MARK_CELLS = 24, 2
LEAST_TASK_CELLS = 20
"""Of what is done so much stays, if need be without all else."""
FIRST_TO_GO = ("left", "bar", "speed", "elapsed", "amount")


class _Rows:
    """A row for each piece of work, of as many whole columns as the terminal has room for."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = [task for task in tasks if task.visible]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Leave columns out instead of cutting their numbers, and shorten the names of the work by words."""
        whole = {
            "bar": [Text(" " * BAR_CELLS) for _ in self._tasks],
            "amount": [_amount(task) for task in self._tasks],
            "speed": [_speed(task) for task in self._tasks],
            "elapsed": [_time(task.finished_time or task.elapsed) for task in self._tasks],
            "left": [Text() if task.finished else _time(task.time_remaining) for task in self._tasks],
        }
        columns = {name: cells for name, cells in whole.items() if any(cell.cell_len for cell in cells)}
        longest = max((cell_len(task.description) for task in self._tasks), default=0)
        least = [Text(" " * min(longest, LEAST_TASK_CELLS))]
        going = [name for name in FIRST_TO_GO if name in columns]
        # Some terminals break a line that fills the last column.
        room = options.max_width - MARK_CELLS - 1
        kept = fitting({"task": least, **columns}, width=room, first_to_go=going)[1:]
        room -= sum(GAP + max(cell.cell_len for cell in columns[name]) for name in kept)
        table = Table.grid(padding=(0, GAP, 0, 0))
        for name in ("task", *kept):
            table.add_column(no_wrap=True, justify="right" if name in {"amount", "speed"} else "left")
        is_plain = options.ascii_only
        for row, task in enumerate(self._tasks):
            mark, cells = _mark(task, is_plain=is_plain), [columns[name][row] for name in kept]
            table.add_row(
                Text.assemble(mark, " ", shortened(task.description, room)),
                *(_bar(task) if name == "bar" else cell for name, cell in zip(kept, cells, strict=True)),
            )
        yield table


class _Progress(Progress):
    def get_renderables(self) -> Iterator[RenderableType]:
        """Draw rows that know how wide the terminal is."""
        yield _Rows(self.tasks)


def _mark(task: Task, *, is_plain: bool) -> Text:
    if task.finished:
        return Text("+" if is_plain else "✓", "green")
    frame = Spinner("line" if is_plain else "dots", style="progress.spinner").render(task.get_time())
    return frame if isinstance(frame, Text) else Text(" ")


def _bar(task: Task) -> ProgressBar:
    total = None if task.total is None else max(0.0, task.total)
    return ProgressBar(
        total=total,
        completed=max(0.0, task.completed),
        width=BAR_CELLS,
        pulse=not task.started,
        animation_time=task.get_time(),
    )


def _amount(task: Task) -> Text:
    """How much is done, and of how much."""
    unit = str(task.fields["unit"])
    if not unit:
        return Text()
    whole = "" if task.total is None else f"/{_number(task.total, unit)}"
    return Text(f"{_number(task.completed, unit)}{whole}{_unit(unit)}", "progress.data.speed")


def _speed(task: Task) -> Text:
    unit, speed = str(task.fields["unit"]), task.finished_speed or task.speed
    return Text(f"{_count(speed, unit)}/s" if unit and speed else "", "progress.data.speed")


def _time(seconds: float | None) -> Text:
    return Text("-:--:--" if seconds is None else str(timedelta(seconds=max(0, int(seconds)))), "cyan")


def _count(value: float, unit: str) -> str:
    return f"{_number(value, unit)}{_unit(unit)}"


def _number(value: float, unit: str) -> str:
    return f"{value / 1e6:,.1f}" if unit == "B" else f"{value:,.0f}"


def _unit(unit: str) -> str:
    return " MB" if unit == "B" else f" {unit}"


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
        # A terminal that cannot go back in a line gets what a file gets.
        self._is_drawn = self.console.is_terminal and not self.console.is_dumb_terminal
        self._progress = _Progress(console=self.console, disable=not self._is_drawn)

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
        number = self._progress.add_task(task, total=total, unit=unit)
        begun = time.monotonic()
        yield _Bar(self._progress, number)
        done = self._progress.tasks[number].completed
        self._progress.update(number, total=max(done, 1), completed=max(done, 1))
        if not self._is_drawn:
            amount = f": {_count(done, unit)}" if unit else ""
            self._print(f"{task}{amount} ({time.monotonic() - begun:.1f} s)")

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
        self._print(visible(text))

    def _print(self, line: str) -> None:
        # What is no terminal has no width to break lines at.
        self.console.print(line, highlight=False, markup=False, soft_wrap=not self.console.is_terminal)
