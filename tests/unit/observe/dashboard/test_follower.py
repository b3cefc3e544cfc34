"""One run and those who look at it: a long log is opened in slices, and told as soon as its leader is read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.observe.dashboard.serving import DEADLINE_S, QUICK, Run, threads_of, wait_until
from tests.unit.observe.story import Teller, training, write_log

from tandem.artefact import JsonValue
from tandem.observe.dashboard import follower, pulse, standing
from tandem.observe.dashboard.board import Viewer
from tandem.observe.dashboard.follower import Follower, Pace
from tandem.observe.dashboard.standing import Seen
from tandem.observe.series.columns import Series
from tandem.observe.series.live import LiveSeries
from tandem.observe.watch.state import WatchState

SLICED = Pace(beat_s=0.02, least_s=0.02, rest=1.0, answers_s=0.02, linger_s=0.05, slice_bytes=2_000)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Of four ranks; any log is a long one."""
    monkeypatch.setattr(follower, "BEHIND_BYTES", 0)
    run = Run(tmp_path / "run")
    for rank in (1, 2, 3):
        teller = Teller()
        write_log(run.folder, [teller.step(number, rank=rank) for number in range(1, 41)])
    return run


@contextmanager
def looked_at(followed: Follower, *figures: str) -> Iterator[Viewer]:
    with followed.viewing(figures, lambda: None) as viewer:
        yield viewer
    wait_until(lambda: not threads_of(followed.key))


def events(viewer: Viewer) -> list[bytes]:
    return list(iter(viewer.take, b""))


def test_a_long_log_is_told_from_its_leader_first_and_judged_when_all_is_read(run: Run) -> None:
    followed = Follower(run.folder, key="sliced", pace=SLICED)
    told: list[bytes] = []
    with looked_at(followed, "losses") as viewer:

        def has_findings() -> bool:
            told.extend(events(viewer))
            return any(event.startswith(b"event: findings") for event in told)

        wait_until(has_findings)
    places = [
        next(n for n, event in enumerate(told) if event.startswith(b"event: " + kind)) for kind in KINDS
    ]
    assert places == sorted(places)
    states = [event for event in told[: places[-1]] if event.startswith(b"event: state")]
    assert b'"reading":0.' in states[0]
    assert b'"reading":1.0' in states[-1]
    assert b'"step":40' in states[0]


KINDS = (b"state", b"figure", b"findings")


def test_a_scraper_is_told_the_state_without_a_word_on_figures(run: Run) -> None:
    followed = Follower(run.folder, key="scraped", pace=QUICK)
    followed.need(60.0)
    wait_until(lambda: followed.is_told)
    with followed.standing() as state:
        assert state is not None
        assert state.step == 40
    assert set(followed.board.versions()) == {"state", "log"}
    run.go_on()
    wait_until(lambda: followed.summary()["step"] == 41)
    with followed.viewing(["losses"], lambda: None) as viewer:
        wait_until(lambda: any(event.startswith(b"event: log") for event in events(viewer)))


def test_who_looks_after_a_scraper_waits_for_no_pace(run: Run) -> None:
    followed = Follower(run.folder, key="prompt", pace=Pace(least_s=3_600.0, linger_s=0.0))
    # For longer than a loaded machine takes to open it: from then on nothing is told any more.
    followed.need(DEADLINE_S)
    wait_until(lambda: followed.is_told)
    with followed.viewing(["losses"], lambda: None):
        wait_until(lambda: "figure losses" in followed.board.versions())


def test_who_comes_while_a_round_begins_is_not_forgotten(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Follower(run.folder, key="busy", pace=Pace(least_s=3_600.0, linger_s=0.0))
    followed.need(DEADLINE_S)
    wait_until(lambda: followed._due > 0)
    came: list[Viewer] = []

    class Late(threading.Event):
        """Somebody comes when it was just looked whether anybody had."""

        def is_set(self) -> bool:
            found = super().is_set()
            if not came:
                came.append(followed.board.join(["losses"], lambda: None))
                self.set()
                followed.need(0.0)
            return found

    monkeypatch.setattr(followed, "_is_new", Late())
    followed.need(DEADLINE_S)
    wait_until(lambda: "figure losses" in followed.board.versions())
    followed.board.leave(came[0])


def test_a_failure_to_put_a_series_together_is_said_and_goes_away(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_broken = threading.Event()

    class Breaking(LiveSeries):
        def series(self) -> Series:
            if is_broken.is_set():
                raise ZeroDivisionError("broken")
            return super().series()

    monkeypatch.setattr(follower, "LiveSeries", Breaking)
    followed = Follower(run.folder, key="breaking", pace=QUICK)
    with looked_at(followed, "losses"):
        wait_until(lambda: "findings" in followed.board.versions())
        is_broken.set()
        run.go_on()
        wait_until(lambda: b"figures and answers are old" in followed.board.event("state"))
        is_broken.clear()
        run.go_on()
        wait_until(lambda: b"figures and answers are old" not in followed.board.event("state"))


def test_a_run_that_says_nothing_is_told_of_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "silent"
    write_log(silent, list(training(Teller(), steps=40)))
    looks: list[bytes] = []

    def look(state: WatchState, seen: Seen) -> dict[str, JsonValue]:
        looks.extend(filter(None, [followed.board.event("state")]))
        return standing.state_note(state, seen)

    monkeypatch.setattr(pulse, "state_note", look)
    followed = Follower(silent, key="silent", pace=QUICK)
    with looked_at(followed):
        wait_until(lambda: len(looks) > 10)
        assert b"silent for" in looks[0]
        assert set(looks) == {looks[0]}


def test_what_was_read_is_given_back_when_nobody_looks_for_long(run: Run) -> None:
    followed = Follower(run.folder, key="forgetful", pace=Pace(linger_s=0.0, least_s=0.02, forget_s=0.0))
    with looked_at(followed, "losses"):
        wait_until(lambda: "figure losses" in followed.board.versions())
    wait_until(lambda: followed._live is None)
    assert followed.series().steps.step[-1] == 40


def test_what_was_read_for_one_figure_is_given_back_when_nobody_asks_again(run: Run) -> None:
    followed = Follower(run.folder, key="fetched", pace=Pace(forget_s=0.01))
    assert len(followed.series().steps)
    wait_until(lambda: followed._series is None and followed._live is None)
