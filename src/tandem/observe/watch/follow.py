"""Following a run from its log: on a terminal one display that changes, elsewhere plain lines."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.live import Live

from tandem.observe.visible import visible
from tandem.observe.watch.lines import Narrator
from tandem.observe.watch.screen import Screen
from tandem.observe.watch.state import WatchState
from tandem.observe.watch.troubles import Trouble
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import follow
from tandem.runlog.record import Record

__all__ = ["Sink", "follow_run"]

POLL_S = 0.5
NANO = 1_000_000_000
FAREWELL_S = 30.0
"""After training has finished, how long the run may take to say so."""


class Sink(Protocol):
    """Another reader that takes the records as they come; it keeps its own troubles to itself."""

    failure: str
    """Why it can take no more; empty while it can."""

    def apply(self, record: Record) -> None:
        """Take the next record."""

    def flush(self) -> None:
        """Show what was taken."""


class _Picture:
    """A display that is drawn anew."""

    def __init__(self, live: Live, state: WatchState) -> None:
        self._live, self._state = live, state
        self._due_s = 0.0

    def tell(self, _record: Record, _trouble: Trouble | None) -> None:
        if time.monotonic() >= self._due_s:
            self.refresh()

    def refresh(self) -> None:
        rows = self._live.console.height - 1
        self._live.update(Screen(state=self._state, now_ns=time.time_ns(), rows=rows), refresh=True)
        self._due_s = time.monotonic() + POLL_S


class _Lines:
    """A display that only grows."""

    def __init__(self, console: Console, state: WatchState, *, since_ns: int) -> None:
        self._console, self._state, self._since_ns = console, state, since_ns
        self._narrator = Narrator()

    def tell(self, record: Record, trouble: Trouble | None) -> None:
        if record.time_ns < self._since_ns:
            return
        if trouble is not None:
            self._print(f"warning: {trouble}")
        for line in self._narrator.lines(record, self._state):
            self._print(line)

    def refresh(self) -> None:
        self._console.file.flush()

    def _print(self, line: str) -> None:
        self._console.print(visible(line), markup=False, highlight=False, soft_wrap=True)


def follow_run(
    folder: Path,
    *,
    console: Console,
    until: Callable[[], bool] | None = None,
    since_ns: int = 0,
    plain: bool = False,
    sinks: Sequence[Sink] = (),
) -> WatchState:
    """Show the run until `until()`, or until its log says that it is over; returns where it stands then.

    What was logged before `since_ns` counts, but is not told again in plain lines.
    """
    state = WatchState(run=folder.resolve().name)
    plain = plain or not console.is_terminal
    with _display(console, state, plain=plain, since_ns=since_ns) as display:

        def wait() -> None:
            _flush(sinks, state)
            display.refresh()
            time.sleep(POLL_S)

        stop = until or (lambda: _is_over(state))
        for record in follow(folder, stop, wait=wait, is_wanted=_unless_step_of_other_rank(folder)):
            trouble = state.apply(record)
            for sink in sinks:
                sink.apply(record)
            display.tell(record, trouble)
        _flush(sinks, state)
        display.refresh()
    return state


@contextmanager
def _display(
    console: Console, state: WatchState, *, plain: bool, since_ns: int
) -> Iterator[_Picture | _Lines]:
    if plain:
        yield _Lines(console, state, since_ns=since_ns)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield _Picture(live, state)


def _flush(sinks: Sequence[Sink], state: WatchState) -> None:
    for sink in sinks:
        sink.flush()
        if sink.failure:
            state.troubles.note(sink.failure, time_ns=state.last_time_ns)


def _is_over(state: WatchState) -> bool:
    is_late = time.time_ns() - state.last_time_ns > FAREWELL_S * NANO
    return state.is_closed or (state.doing == "finished" and is_late)


def _unless_step_of_other_rank(folder: Path) -> Callable[[Path, bytes], bool]:
    """The steps of the other ranks are most of the log, and rank 0 tells the same."""
    first = RunLayout(folder).rank_log(0)
    return lambda path, line: b'"event":"StepFinished"' not in line or path == first
