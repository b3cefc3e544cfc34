"""What there is to tell of one run, kept once for all who look: of each kind only the newest."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice

import orjson

from tandem.artefact import JsonValue
from tandem.observe.report.strict import strict_json

__all__ = ["MOST_LINES", "Board", "Viewer", "encode"]

STATE, LOG = "state", "log"
MOST_LINES = 500
"""Lines of the event log that are held."""


def encode(value: object) -> bytes:
    """Strict JSON in one line; text that has no UTF-8 form is written out."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(strict_json(value))


class Viewer:
    """One who looks; takes what is new since it took last, so that a slow one misses steps and holds nothing."""

    def __init__(self, board: "Board", figures: Collection[str], on_news: Callable[[], None]) -> None:
        self.figures = frozenset(figures)
        self.on_news = on_news
        self._board = board
        self._seen: dict[str, int] = {}
        self._told = (0, 0)

    def take(self) -> bytes:
        """The next event that is new, as it is now; empty where nothing is.

        The state comes first; then what waits longest, so that a slow one sees all kinds in turn.
        """
        waiting = {
            kind: version
            for kind, version in self._board.versions().items()
            if self._seen.get(kind) != version and self._wants(kind)
        }
        for kind in sorted(waiting, key=lambda each: (each != STATE or each in self._seen, waiting[each])):
            self._seen[kind] = waiting[kind]
            if kind == LOG:
                event, self._told = self._board.lines_since(*self._told)
            else:
                event = self._board.event(kind)
            if event:
                return event
        return b""

    def _wants(self, kind: str) -> bool:
        _, _, figure = kind.partition(" ")
        return not figure or figure in self.figures


class Board:
    """Takes notes from any thread, and wakes those who look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[str, bytes] = {}
        self._versions: dict[str, int] = {}
        self._marks: dict[str, bytes] = {}
        self._newest = 0
        self._lines: deque[JsonValue] = deque(maxlen=MOST_LINES)
        self._count = 0
        self._telling = 0
        self._viewers: set[Viewer] = set()

    def join(self, figures: Collection[str], on_news: Callable[[], None]) -> Viewer:
        """One more looks, at these figures; `on_news` is called from any thread."""
        viewer = Viewer(self, figures, on_news)
        with self._lock:
            self._viewers.add(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """One no longer looks."""
        with self._lock:
            self._viewers.discard(viewer)

    @property
    def is_seen(self) -> bool:
        """Whether anybody looks."""
        return bool(self._viewers)

    def wanted(self) -> frozenset[str]:
        """Figures that somebody looks at."""
        with self._lock:
            return frozenset().union(*(viewer.figures for viewer in self._viewers))

    def put(self, kind: str, value: object, *, apart_from: Collection[str] = ()) -> None:
        """Hold as the newest of its kind, if it differs from the one before in more than the fields named.

        The kind is the name of the event; figures are told apart by their name behind a space.
        """
        data = encode(value)
        mark = data
        if apart_from and isinstance(value, Mapping):
            mark = encode({name: each for name, each in value.items() if name not in apart_from})
        with self._lock:
            if self._marks.get(kind) == mark:
                return
            self._marks[kind] = mark
            self._events[kind] = _event(kind.partition(" ")[0], data)
            self._renew(kind)
        self._wake()

    def drop(self, kind: str) -> None:
        """Hold nothing of this kind."""
        with self._lock:
            for held in (self._events, self._versions, self._marks):
                held.pop(kind, None)

    def begin_lines(self, lines: Sequence[JsonValue]) -> None:
        """Hold these lines of the event log, which are all from the start of the run on."""
        with self._lock:
            self._lines = deque(lines, maxlen=MOST_LINES)
            self._count = len(lines)
            self._telling += 1
            self._renew(LOG)
        self._wake()

    def add_line(self, line: JsonValue) -> None:
        """Add the next line of the event log."""
        with self._lock:
            self._lines.append(line)
            self._count += 1
            self._renew(LOG)
        self._wake()

    def versions(self) -> dict[str, int]:
        """What there is of each kind, by a number that grows with every change."""
        with self._lock:
            return dict(self._versions)

    def event(self, kind: str) -> bytes:
        """The newest of a kind, as an event; empty where there is none."""
        with self._lock:
            return self._events.get(kind, b"")

    def lines_since(self, telling: int, told: int) -> tuple[bytes, tuple[int, int]]:
        """Lines of the log that are not told yet, as an event, empty without any; and what is told then."""
        with self._lock:
            first = self._count - len(self._lines)
            begin = max(first, told if telling == self._telling else 0)
            held = list(islice(self._lines, begin - first, None))
            now = (self._telling, self._count)
        return (_event(LOG, encode({"from": begin, "lines": held})) if held else b""), now

    def _renew(self, kind: str) -> None:
        self._newest += 1
        self._versions[kind] = self._newest

    def _wake(self) -> None:
        with self._lock:
            viewers = list(self._viewers)
        for viewer in viewers:
            viewer.on_news()


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
