"""Where a run stands, kept up to date from what its logs gain: costs nothing, however long the run is."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tandem.artefact import JsonValue
from tandem.observe.dashboard.board import Board
from tandem.observe.dashboard.priority import step_back
from tandem.observe.dashboard.sentences import log_line
from tandem.observe.dashboard.standing import Seen, explain_failure, state_note, unread_note
from tandem.observe.watch.follow import unless_step_of_other_rank
from tandem.observe.watch.state import WatchState
from tandem.runlog.reader import follow

__all__ = ["Pulse"]

TIMES = ("now_ns", "silent_s")
"""Of a state: they alone are no news."""
SLOW = 10
"""A run that has said good-bye is looked at so much more seldom: it may be resumed."""


class Pulse:
    """Follows one run in a thread of its own, and puts its state and its event log on the board."""

    def __init__(
        self,
        run: Path,
        *,
        key: str,
        board: Board,
        beat_s: float,
        reading: Callable[[], float],
    ) -> None:
        self._run, self._key, self._board, self._beat_s = run, key, board, beat_s
        self._reading = reading
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._state = WatchState(run=run.name)
        self._thread: threading.Thread | None = None
        self.is_known = False
        """Whether there is a state that was read from the log."""
        self.is_told = False
        """Whether there is anything on the board, were it that the log cannot be read."""
        self.complaint = ""
        """What cannot be shown beside the state, and why; empty where nothing is wrong."""
        self.failure: Exception | None = None
        """Why it follows no longer; None while it does."""

    def start(self, state: WatchState, lines: Sequence[JsonValue], *, offsets: Mapping[Path, int]) -> None:
        """Go on from a state and an event log, which have taken what the logs hold up to these places."""
        self._state = state
        self.show()
        self._board.begin_lines(lines)
        self._thread = threading.Thread(
            target=self._follow, args=(dict(offsets),), name=f"pulse {self._key}", daemon=True
        )
        self._thread.start()

    @property
    def is_started(self) -> bool:
        """Whether it has begun to follow."""
        return self._thread is not None

    def stop(self) -> None:
        """Follow no longer."""
        self._over.set()

    @contextmanager
    def held(self) -> Iterator[WatchState]:
        """The state, which does not change inside the block."""
        with self._lock:
            yield self._state

    def show(self) -> None:
        """Put the state on the board."""
        if self._over.is_set():
            return
        self.is_known = self.is_told = True
        with self._lock:
            note = state_note(self._state, self._seen())
        self._board.put("state", note, apart_from=TIMES)

    def show_failure(self, error: Exception) -> None:
        """Say that the log cannot be read."""
        self.is_told = True
        note = unread_note(explain_failure(error, self._run), self._seen())
        self._board.put("state", note, apart_from=TIMES)

    def _seen(self) -> Seen:
        return Seen(
            key=self._key,
            run=self._run,
            now_ns=time.time_ns(),
            reading=self._reading(),
            complaint=self.complaint,
        )

    def _follow(self, offsets: Mapping[Path, int]) -> None:
        step_back()
        try:
            self._take_records(offsets)
        except Exception as error:  # noqa: BLE001 - it is told on the page, where a dead thread would be silent
            self.failure = error

    def _take_records(self, offsets: Mapping[Path, int]) -> None:
        records = follow(
            self._run,
            self._over.is_set,
            wait=self._beat,
            is_wanted=unless_step_of_other_rank(self._run),
            offsets=offsets,
        )
        for record in records:
            # Another may have taken over already.
            if self._over.is_set():
                return
            with self._lock:
                self._state.apply(record)
            line = log_line(record)
            if line is not None:
                self._board.add_line(line)

    def _beat(self) -> None:
        self.show()
        is_over = self._state.is_closed and self._reading() >= 1
        self._over.wait(self._beat_s * (SLOW if is_over else 1))
