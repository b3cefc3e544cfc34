"""One run and those who look at it: read, drawn and told once for all of them, and left alone without any."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import JsonValue
from tandem.observe.dashboard.board import Board, Viewer
from tandem.observe.dashboard.drawing import Drawing
from tandem.observe.dashboard.memory import give_back
from tandem.observe.dashboard.priority import step_back
from tandem.observe.dashboard.pulse import Pulse
from tandem.observe.dashboard.sentences import log_line
from tandem.observe.dashboard.standing import Seen, explain_failure, listed_note, summary_note
from tandem.observe.listing import damaged_run, list_run
from tandem.observe.series.columns import Series
from tandem.observe.series.live import LiveSeries
from tandem.observe.series.room import Disk
from tandem.observe.watch.opening import open_run
from tandem.observe.watch.standing import state_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record

__all__ = ["Follower", "Pace"]

NANO = 1_000_000_000
BEHIND_BYTES = 1 << 20
"""From here on there is more to read than a run writes meanwhile."""
PART = 0.25
"""Of a log that is being opened, after which it is drawn again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a run is looked at while somebody looks."""

    beat_s: float = 0.5
    """Between two looks at the ends of the logs."""
    least_s: float = 1.0
    """Between two drawings."""
    rest: float = 30.0
    """Seconds of rest for a second of a processor: about 3 % of one core."""
    answers_s: float = 5.0
    """Between two judgements, which cost more than all figures and change less."""
    linger_s: float = 5.0
    """For a page that comes back with other wishes, after the last one has left."""
    forget_s: float = 600.0
    """After that, what was read is given back."""
    slice_bytes: int = 32 << 20
    """Of a long log, read at once."""


class Follower:
    """Reads a run while it is looked at, in a thread of low priority."""

    def __init__(self, run: Path, *, key: str, pace: Pace) -> None:
        self.run, self.key = run, key
        self.board = Board()
        self._pace = pace
        self._life = threading.Lock()
        self._worker: threading.Thread | None = None
        self._wake = threading.Event()
        self._is_new = threading.Event()
        self._needed_until = 0.0
        self._reading = threading.Lock()
        self._room = Disk()
        self._live: LiveSeries | None = None
        self._drawing = Drawing(self.board)
        self._pulse = self._new_pulse()
        self._series: Series | None = None
        self._series_share = self._read_share = 0.0
        self._is_behind = self._is_short = False
        self._due = self._list_due = self._answers_due = 0.0
        self._timer = threading.Timer(0.0, self._forget)
        self._listing = threading.Lock()
        self._listed: dict[str, JsonValue] | None = None

    @contextmanager
    def viewing(self, figures: Collection[str], on_news: Callable[[], None]) -> Iterator[Viewer]:
        """Somebody looks at these figures inside the block."""
        viewer = self.board.join(figures, on_news)
        if self._series is None or not self._pulse.is_started:
            self._is_new.set()
        self.need(0.0)
        try:
            yield viewer
        finally:
            self.board.leave(viewer)
            self.need(self._pace.linger_s)

    def need(self, seconds: float) -> None:
        """Keep the state up to date for so long, also without anybody who looks."""
        with self._life:
            self._needed_until = max(self._needed_until, time.monotonic() + seconds)
            self._wake.set()
            if self._worker is None and (seconds or self.board.is_seen):
                self._worker = threading.Thread(target=self._work, name=f"run {self.key}", daemon=True)
                self._worker.start()

    @property
    def is_told(self) -> bool:
        """Whether the run was looked into, since somebody needs it."""
        return self._pulse.is_told

    @contextmanager
    def standing(self) -> Iterator[WatchState | None]:
        """The state, which does not change inside the block; None while nothing is known."""
        with self._pulse.held() as state:
            yield state if self._pulse.is_known else None

    def summary(self) -> dict[str, JsonValue]:
        """The run in a list of runs; one that nobody follows is read at the ends of its logs alone."""
        try:
            with self.standing() as state:
                if state is not None:
                    return summary_note(state, Seen(key=self.key, run=self.run, now_ns=time.time_ns()))
        except Exception as error:  # noqa: BLE001 - one damaged run must not take the list of all down
            return listed_note(damaged_run(self.run, error), key=self.key)
        with self._listing:
            if time.monotonic() >= self._list_due or self._listed is None:
                begun = time.thread_time()
                self._listed = listed_note(list_run(self.run), key=self.key)
                self._list_due = time.monotonic() + self._rest_s(time.thread_time() - begun)
            return self._listed

    def series(self) -> Series:
        """What is known of the run, of its leader at least; no older than the pace allows."""
        with self._reading:
            # Who looks is drawn for in a thread that reads on by itself.
            if self._series is None or (not self.board.is_seen and time.monotonic() >= self._due):
                begun = time.thread_time()
                self._read_on(_sizes(self.run))
                self._due = time.monotonic() + self._rest_s(time.thread_time() - begun)
            assert self._series is not None
            self._forget_later()
            return self._series

    def _read_on(self, sizes: Mapping[Path, int]) -> None:
        """Read what the logs have gained: first the leader's, which most is drawn of, then the others in slices."""
        if self._live is None:
            self._live = LiveSeries(self.run, room=self._room)
        live, before = self._live, dict(self._live.offsets)
        is_long = sum(sizes.values()) > self._pace.slice_bytes
        if is_long and not before:
            live.refresh(leader_only=True)
        else:
            live.refresh(at_most_bytes=self._pace.slice_bytes)
        read_bytes = sum(live.offsets.values())
        self._is_behind = live.behind_bytes > BEHIND_BYTES or (is_long and not before)
        self._read_share = read_bytes / (read_bytes + live.behind_bytes) if self._is_behind else 1.0
        is_much = self._read_share - self._series_share >= PART or not self._is_behind
        if self._series is None or (is_much and before != live.offsets):
            self._series, self._series_share = live.series(), self._read_share

    def _rest_s(self, worked_s: float) -> float:
        return max(self._pace.least_s, self._pace.rest * worked_s)

    def _goes_on(self) -> bool:
        return self.board.is_seen or time.monotonic() < self._needed_until

    def _work(self) -> None:
        step_back()
        while True:
            with self._life:
                if not self._goes_on():
                    self._rest_in_peace()
                    return
                self._wake.clear()
            self._round()
            until = self._due if self.board.is_seen else min(self._due, self._needed_until)
            self._wake.wait(max(0.0, until - time.monotonic()))

    def _rest_in_peace(self) -> None:
        """Nobody looks: from here on nothing is done."""
        self._worker = None
        self._end_pulse()
        self.board.drop("state")
        self._forget_later()

    def _forget_later(self) -> None:
        """Also what was read for a figure that somebody fetched, without any page that stays open."""
        self._timer.cancel()
        self._timer = threading.Timer(self._pace.forget_s, self._forget)
        self._timer.daemon = True
        self._timer.start()

    def _forget(self) -> None:
        with self._life, self._reading:
            if self._worker is None:
                self._live = self._series = None
                self._drawing = Drawing(self.board)
                self._series_share = self._read_share = 0.0
                give_back()

    def _new_pulse(self) -> Pulse:
        return Pulse(
            self.run,
            key=self.key,
            board=self.board,
            beat_s=self._pace.beat_s,
            reading=lambda: self._read_share,
        )

    def _round(self) -> None:
        begun = time.thread_time()
        is_new = self._is_new.is_set()
        if is_new:
            # Only then: one who comes between the two lines would not be seen.
            self._is_new.clear()
        is_due = is_new or time.monotonic() >= self._due
        try:
            if is_due and self.board.is_seen:
                self._read()
            elif is_due and (self._pulse.failure or not self._pulse.is_started):
                self._open()
            if self.board.is_seen:
                self._draw()
            self._pulse.complaint = ""
            # What a short run takes is not worth the time.
            if is_due and self._room.let_go():
                give_back()
        except Exception as error:  # noqa: BLE001 - the page says what is wrong, and the other runs go on
            self._pulse.complaint = f"figures and answers are old: {explain_failure(error, self.run)}"
            if not self._pulse.is_started:
                self._pulse.show_failure(error)
        if is_due:
            rest_s = self._rest_s(time.thread_time() - begun)
            self._due = time.monotonic() + (0.0 if self._is_behind and self.board.is_seen else rest_s)

    def _draw(self) -> None:
        series = self._series
        if series is None:
            return
        if series is not self._drawing.series:
            self._drawing.take(series)
        self._drawing.draw(is_over=lambda: not self._goes_on())
        # An answer from a part of the log could be wrong.
        if not self._is_behind and time.monotonic() >= self._answers_due:
            self._drawing.judge()
            self._answers_due = time.monotonic() + self._pace.answers_s

    def _open(self) -> None:
        """Follow where the run stands and no more: nobody looks."""
        self._end_pulse()
        state, offsets = open_run(self.run)
        self._is_short = True
        self._pulse.start(state, (), offsets=offsets)

    def _read(self) -> None:
        """Read on, and follow: at once from what the leader says, and anew when all is read."""
        sizes = _sizes(self.run)
        with self._reading:
            self._read_on(sizes)
            series, offsets = self._series, dict(self._live.offsets if self._live is not None else {})
        assert series is not None
        if self._pulse.failure or (self._is_short and not self._is_behind):
            self._end_pulse()
        if not self._pulse.is_started:
            self._is_short = self._is_behind
            unread = {path: size for path, size in sizes.items() if self._is_short and not offsets.get(path)}
            self._pulse.start(state_of(series), _lines(series), offsets={**offsets, **unread})

    def _end_pulse(self) -> None:
        self._pulse.stop()
        self._pulse = self._new_pulse()
        self._is_short = False


def _sizes(run: Path) -> dict[Path, int]:
    sizes = {}
    for path in RunLayout(run).log.glob("*.jsonl"):
        with suppress(OSError):
            sizes[path] = path.stat().st_size
    return sizes


def _lines(series: Series) -> list[JsonValue]:
    """The event log of what was read."""
    records = (
        Record(
            time_ns=series.begun_ns + round(mark.time_s * NANO),
            clock_s=0.0,
            rank=mark.rank,
            host=mark.host,
            sequence=0,
            event=mark.event,
        )
        for mark in series.marks
    )
    return [line for line in map(log_line, records) if line is not None]
