"""Following a run from its log: on a terminal one display that changes, elsewhere plain lines."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from rich.console import Console
from rich.live import Live

from tandem.lock import is_held
from tandem.observe.visible import visible
from tandem.observe.watch.life import Life, life_of
from tandem.observe.watch.lines import Narrator
from tandem.observe.watch.opening import open_run
from tandem.observe.watch.screen import Screen
from tandem.observe.watch.state import FAILED, WatchState
from tandem.observe.watch.troubles import Trouble
from tandem.runlog.event import StepFinished
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import follow
from tandem.runlog.record import Record

__all__ = ["Sink", "can_draw", "follow_run", "is_over", "look_at_run", "unless_step_of_other_rank"]

POLL_S = 0.5
DRAW_S = 0.9
"""Drawing takes more than reading: not at every look at the log."""
GLANCES = 10
"""At the size of the terminal, from one look at the log to the next."""
NANO = 1_000_000_000
FAREWELL_S = 30.0
"""After training has finished, or ranks have failed, how long the run may take to say so, or to begin anew."""


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

    def __init__(self, live: Live, state: WatchState, folder: Path) -> None:
        self._live, self._state, self._folder = live, state, folder
        self._size = live.console.size
        self._due_s = 0.0

    def tell(self, _record: Record, _trouble: Trouble | None) -> None:
        self.keep_up()

    def keep_up(self) -> None:
        if time.monotonic() >= self._due_s or self._live.console.size != self._size:
            self.refresh()

    def refresh(self) -> None:
        console = self._live.console
        if console.size != self._size:
            self._start_anew()
        self._live.update(_screen(self._state, console, self._folder), refresh=True)
        self._due_s = time.monotonic() + DRAW_S

    def wait(self) -> None:
        """Wait for what comes next, but not with a change of the terminal's size."""
        for _ in range(GLANCES):
            time.sleep(POLL_S / GLANCES)
            if self._live.console.size != self._size:
                return

    def _start_anew(self) -> None:
        """Lines that the terminal has broken anew are not where they were drawn."""
        console = self._live.console
        self._size = console.size
        if console.is_alt_screen:
            console.clear()
            return
        overflow = self._live.vertical_overflow
        self._live.stop()
        console.clear()
        self._live.vertical_overflow = overflow
        self._live.start()


def _screen(state: WatchState, console: Console, folder: Path) -> Screen:
    return Screen(state=state, now_ns=time.time_ns(), rows=console.height - 1, folder=folder)


class _Lines:
    """A display that only grows."""

    def __init__(self, console: Console, state: WatchState, folder: Path, *, since_ns: int) -> None:
        self._console, self._state, self._folder, self._since_ns = console, state, folder, since_ns
        self._narrator = Narrator()

    def tell(self, record: Record, trouble: Trouble | None) -> None:
        if record.time_ns < self._since_ns:
            return
        if self._narrator.waits:
            self._print(*self._narrator.hear(self._state, life=self._life(time.time_ns())))
        if trouble is not None:
            self._print(f"warning: {trouble}")
        self._print(*self._narrator.lines(record, self._state))

    def keep_up(self) -> None:
        # A run that is resumed was silent before, and is not heard of at once.
        if self._state.last_time_ns >= self._since_ns:
            now_ns = time.time_ns()
            self._print(*self._narrator.meanwhile(self._state, life=self._life(now_ns), now_ns=now_ns))
        self._console.file.flush()

    def refresh(self) -> None:
        self._print(*self._narrator.rest(self._state))
        self._console.file.flush()

    def wait(self) -> None:
        time.sleep(POLL_S)

    def _life(self, now_ns: int) -> Life:
        return life_of(self._state, folder=self._folder, now_ns=now_ns)

    def _print(self, *lines: str) -> None:
        # A terminal would break lines within words and numbers; a file has no width.
        is_whole = not self._console.is_terminal
        for line in lines:
            self._console.print(visible(line), markup=False, highlight=False, soft_wrap=is_whole)


def can_draw(console: Console) -> bool:
    """Whether a display can be drawn anew there: neither on paper, nor where only lines can be written."""
    return console.is_terminal and not console.is_dumb_terminal


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
    if plain or not can_draw(console):
        lines = _Lines(console, state, folder, since_ns=since_ns)
        _follow(folder, state, lines, until=until, sinks=sinks)
        return state
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        _follow(folder, state, _Picture(live, state, folder), until=until, since_ns=since_ns, sinks=sinks)
    return state


def look_at_run(folder: Path, *, console: Console) -> WatchState:
    """Show a run on the whole terminal until its log says that it is over; the last picture stays.

    Opens a long run fast, where `follow_run` goes through every record.
    """
    state, offsets = open_run(folder)
    if not is_over(state, folder):
        with Live(console=console, auto_refresh=False, screen=True) as live:
            _follow(folder, state, _Picture(live, state, folder), offsets=offsets)
    console.print(_screen(state, console, folder))
    return state


def _follow(
    folder: Path,
    state: WatchState,
    display: _Picture | _Lines,
    *,
    until: Callable[[], bool] | None = None,
    since_ns: int = 0,
    sinks: Sequence[Sink] = (),
    offsets: Mapping[Path, int] = MappingProxyType({}),
) -> None:
    def wait() -> None:
        _flush(sinks, state)
        display.keep_up()
        display.wait()

    stop = until or (lambda: is_over(state, folder))
    is_wanted = (
        unless_step_of_other_rank(folder)
        if isinstance(display, _Lines)
        else _unless_old_step_of_other_rank(folder, since_ns)
    )
    for record in follow(folder, stop, wait=wait, is_wanted=is_wanted, offsets=offsets):
        trouble = state.apply(record)
        if record.rank and isinstance(record.event, StepFinished):
            continue
        for sink in sinks:
            sink.apply(record)
        display.tell(record, trouble)
    _flush(sinks, state)
    display.refresh()


def _flush(sinks: Sequence[Sink], state: WatchState) -> None:
    for sink in sinks:
        sink.flush()
        if sink.failure:
            state.troubles.note(sink.failure, time_ns=state.last_time_ns)


def is_over(state: WatchState, folder: Path) -> bool:
    """Whether the run has ended, by its log: no rank's end is the run's where the rank may be started again.

    A command that watches over the ranks has the last word. Without one, ranks that failed may be started again by
    another launcher, for which some time is given; as is for the last word.
    """
    if state.is_closed and (state.is_supervised or not state.ended.startswith(FAILED)):
        return True
    is_late = time.time_ns() - state.last_time_ns > FAREWELL_S * NANO
    return state.doing in {"finished", "imported"} and is_late and not is_held(folder)


def unless_step_of_other_rank(folder: Path) -> Callable[[Path, bytes], bool]:
    """The steps of the other ranks are most of the log, and rank 0 tells the same."""
    first = RunLayout(folder).rank_log(0)
    return lambda path, line: b'"event":"StepFinished"' not in line or path == first


def _unless_old_step_of_other_rank(folder: Path, since_ns: int) -> Callable[[Path, bytes], bool]:
    """Their last steps tell what the time goes into; to read all of them would take as long as the log is."""
    is_rare = unless_step_of_other_rank(folder)

    def is_wanted(path: Path, line: bytes) -> bool:
        if is_rare(path, line):
            return True
        time_ns = line.partition(b'"time_ns":')[2].partition(b",")[0]
        return not since_ns or (time_ns.isdigit() and int(time_ns[:20]) >= since_ns)

    return is_wanted
