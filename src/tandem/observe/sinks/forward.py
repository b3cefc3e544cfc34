"""A run as it goes on, forwarded to another tool: everything once, whoever is killed in between."""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tandem.artefact import fingerprint, write_atomic
from tandem.files import read_bounded
from tandem.observe.dashboard.sentences import log_line
from tandem.observe.series.fold import read_series
from tandem.observe.sinks.bookmark import Bookmark, write_bookmark
from tandem.observe.sinks.curves import Curves, Point
from tandem.observe.sinks.system import HostWindows
from tandem.observe.sinks.tool import Ending, Tool
from tandem.observe.verdicts import judge_run
from tandem.observe.watch.follow import is_over, unless_step_of_other_rank
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import (
    EvaluationFinished,
    HostSampled,
    RunFinished,
    SampleTranslated,
    TranslationScored,
)
from tandem.runlog.reader import follow
from tandem.runlog.record import Record

__all__ = ["Forwarder", "answers_of", "forward_run"]

POLL_S = 1.0
NANO = 1_000_000_000
MOST_POINTS = 1_000
"""That are held before they are handed over."""
MOST_EVENTS = 200
_LEADER = "rank 0"
_TRANSLATIONS = "translations"


class Forwarder:
    """Takes the records of a run from its beginning, and gives a tool those that it does not have.

    The bookmark is moved before a batch is handed over, and back where the tool refuses it: a kill between the two may
    lose the batch, but nothing is ever there twice. Curves only grow: steps that are done again after a restart are
    dropped as far as the tool has them.
    """

    def __init__(self, tool: Tool, path: Path, bookmark: Bookmark) -> None:
        self._tool, self._path, self._bookmark = tool, path, bookmark
        self._curves, self._hosts = Curves(), HostWindows()
        self._begun_ns = 0
        self._seen: Counter[str] = Counter()
        self._points: list[Point] = []
        self._samples: list[SampleTranslated] = []
        self._facts: dict[str, str] = {}
        self._events: deque[tuple[str, str]] = deque(maxlen=MOST_EVENTS)
        self._event_count = 0
        self.ending: Ending = "goes on"

    def apply(self, record: Record) -> None:
        """Take the next record."""
        self._begun_ns = self._begun_ns or record.time_ns
        self._take_words(record)
        if record.rank == 0:
            self._take_leader(record)
        else:
            self._take_host(record)
        if len(self._points) >= MOST_POINTS:
            self.flush()

    def flush(self) -> None:
        """Hand over what was gathered; raises what the tool raises."""
        points, self._points = self._points, []
        facts, self._facts = self._facts, {}
        if points or facts:
            self._hand_over(lambda: self._give(points, facts))

    def close(self, answers: Mapping[str, str]) -> None:
        """Hand over what is left, and the answers if they are others than the tool has."""
        self._points += self._new(self._curves.rest())
        if answers and (mark := fingerprint(answers)) != self._bookmark.answers:
            self._facts |= answers
            self._bookmark.answers = mark
        self.flush()
        self._give_events()

    def _take_leader(self, record: Record) -> None:
        is_known = self._is_known(_LEADER)
        if not is_known:
            self._points += self._new(self._curves.take(record))
        match record.event:
            case SampleTranslated() as sample:
                same = [each for each in self._samples if each.step == sample.step]
                self._samples = [*same, sample]
            case TranslationScored(set="valid") as scored if not is_known:
                self._facts["BLEU signature"] = scored.bleu_signature
                self._facts["chrF signature"] = scored.chrf_signature
            case EvaluationFinished(step=step):
                self._give_translations(step)

    def _take_host(self, record: Record) -> None:
        host = record.host or ""
        if isinstance(record.event, HostSampled) and self._is_known(host):
            return
        if (means := self._hosts.take(record)) is not None:
            self._bookmark.taken[host] = self._seen[host]
            self._points.append(self._point(record.time_ns, self._step, means))

    def _is_known(self, writer: str) -> bool:
        """Whether the tool has the next record of a writer."""
        self._seen[writer] += 1
        return self._seen[writer] <= self._bookmark.taken.get(writer, 0)

    def _take_words(self, record: Record) -> None:
        if isinstance(record.event, RunFinished):
            self.ending = "badly" if record.event.reason.startswith("failed") else "well"
        line = log_line(record)
        if isinstance(line, dict):
            when = datetime.fromtimestamp(record.time_ns / NANO, UTC)
            self._events.append((f"{when:%Y-%m-%d %H:%M:%S}", str(line["text"])))
            self._event_count += 1

    def _new(self, points: Sequence[Point]) -> list[Point]:
        """What the tool does not have of them; its curves are moved on."""
        new = []
        for point in points:
            self._bookmark.taken[_LEADER] = self._seen[_LEADER]
            held = self._bookmark.steps
            numbers = {
                name: value for name, value in point.numbers.items() if point.step > held.get(name, -1)
            }
            held.update(dict.fromkeys(numbers, point.step))
            if numbers:
                new.append(self._point(point.time_ns, point.step, numbers))
        return new

    def _point(self, time_ns: int, step: int, numbers: Mapping[str, float]) -> Point:
        elapsed_s = (time_ns - self._begun_ns) / NANO
        return Point(time_ns=time_ns, step=step, numbers={**numbers, "elapsed_s": elapsed_s})

    @property
    def _step(self) -> int:
        """The last that the tool has."""
        return max(self._bookmark.steps.values(), default=0)

    def _give(self, points: Sequence[Point], facts: Mapping[str, str]) -> None:
        self._tool.log_points(points)
        if facts:
            self._tool.log_facts(self._step, facts)

    def _give_translations(self, step: int) -> None:
        samples = [each for each in self._samples if each.step == step]
        if not samples or step <= self._bookmark.steps.get(_TRANSLATIONS, -1):
            return
        self.flush()
        self._bookmark.steps[_TRANSLATIONS] = step
        self._hand_over(lambda: self._tool.log_translations(step, samples))
        self._give_events()

    def _give_events(self) -> None:
        if self._event_count > self._bookmark.events:
            self._bookmark.events = self._event_count
            self._hand_over(lambda: self._tool.log_events(self._step, list(self._events)))

    def _hand_over(self, give: Callable[[], None]) -> None:
        before = read_bounded(self._path)
        write_bookmark(self._path, self._bookmark)
        try:
            give()
        except BaseException:
            write_atomic(self._path, before)
            raise


def forward_run(
    run: Path,
    forwarder: Forwarder,
    *,
    until: Callable[[], bool] | None = None,
    is_left: Callable[[], bool] = lambda: False,
    wait: Callable[[], None] = lambda: time.sleep(POLL_S),
) -> None:
    """Forward the run until its log says that it is over, or until `until()`; `is_left()` ends it at once."""
    state = WatchState()
    is_done = until or (lambda: is_over(state, run))

    def rest() -> None:
        forwarder.flush()
        wait()

    for record in follow(
        run, lambda: is_left() or is_done(), wait=rest, is_wanted=unless_step_of_other_rank(run)
    ):
        state.apply(record)
        forwarder.apply(record)
        if is_left():
            break
    forwarder.close(answers_of(run) if state.is_closed and not is_left() else {})


def answers_of(run: Path) -> dict[str, str]:
    """The eleven answers in short, by the names of their questions."""
    return {
        f"{finding.number:02d} {finding.key}": f"{finding.verdict}: {finding.answer}"
        for finding in judge_run(read_series(run))
    }
