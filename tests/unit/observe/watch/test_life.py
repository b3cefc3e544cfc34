"""Whether a run is at work, silent, lost or over."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.observe.story import Teller, finished, started, write_log

from tandem.lock import beside, holding
from tandem.observe.watch.life import Life, life_of, silence_s, word_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import EvaluationStarted, RunFinished, RunImported
from tandem.runlog.layout import RunLayout

NANO = 1_000_000_000


def after(steps: int) -> WatchState:
    teller, state = Teller(), WatchState()
    state.apply(teller.tell(started()))
    for number in range(1, steps + 1):
        state.apply(teller.step(number))
    return state


def life_after(state: WatchState, seconds: float, *, folder: Path | None = None) -> Life:
    return life_of(state, folder=folder, now_ns=state.last_time_ns + int(seconds * NANO))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that this host made."""
    folder = tmp_path / "run"
    write_log(folder, [Teller().step(1)])
    RunLayout(folder).host_log(platform.node()).touch()
    return folder


def leave_lock(run: Path, pid: object) -> None:
    beside(run, "lock").write_text(json.dumps({"pid": pid}), encoding="utf-8")


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_a_run_without_news_is_silent_after_half_a_minute() -> None:
    assert [life_after(after(3), seconds) for seconds in (29, 31)] == ["at work", "silent"]


def test_an_evaluation_may_take_longer_before_it_counts_as_silent() -> None:
    state = after(3)
    state.apply(Teller(state.last_time_ns).tell(EvaluationStarted(step=3)))
    assert [life_after(state, seconds) for seconds in (200, 400)] == ["at work", "silent"]


def test_a_run_of_which_nothing_was_heard_yet_is_not_silent() -> None:
    assert life_of(WatchState(), folder=None, now_ns=10**6 * NANO) == "at work"
    assert silence_s(WatchState(), now_ns=10**6 * NANO) == 0


@pytest.mark.parametrize(
    "event", [finished(3), RunImported(tool="x", files=(), times="wall", step_kind="each", facts={})]
)
def test_a_run_that_ended_or_was_imported_is_over_however_long_ago(event: RunImported, run: Path) -> None:
    state = after(3)
    state.apply(Teller(state.last_time_ns).tell(event))
    leave_lock(run, dead_process())
    assert life_after(state, 10**6, folder=run) == "over"


def test_a_run_whose_process_is_gone_is_lost_before_its_silence_tells(run: Path) -> None:
    leave_lock(run, dead_process())
    state = after(3)
    assert [life_after(state, seconds, folder=run) for seconds in (1, 8, 10**6)] == [
        "at work",
        "lost",
        "lost",
    ]
    assert life_after(state, 8) == "at work"


def test_a_run_whose_process_is_there_is_not_lost(run: Path) -> None:
    leave_lock(run, os.getpid())
    assert [life_after(after(3), seconds, folder=run) for seconds in (8, 3_600)] == ["at work", "silent"]


def test_a_run_that_is_held_is_not_lost_whatever_the_note_says(run: Path) -> None:
    pid = dead_process()
    with holding(run):
        leave_lock(run, pid)
        assert life_after(after(3), 3_600, folder=run) == "silent"


@pytest.mark.parametrize("note", [None, "many", -1, 0, 10**30])
def test_a_note_that_names_no_process_tells_nothing(run: Path, note: object) -> None:
    leave_lock(run, note)
    assert life_after(after(3), 3_600, folder=run) == "silent"


def test_of_a_process_of_another_host_nothing_is_known(run: Path) -> None:
    leave_lock(run, dead_process())
    here, there = RunLayout(run).host_log(platform.node()), RunLayout(run).host_log("elsewhere")
    there.touch()
    os.utime(here, ns=(1, 1))
    assert life_after(after(3), 8, folder=run) == "at work"
    here.unlink()
    assert life_after(after(3), 3_600, folder=run) == "silent"


def test_a_link_to_a_run_is_judged_as_the_run(run: Path, tmp_path: Path) -> None:
    leave_lock(run, dead_process())
    (tmp_path / "link").symlink_to(run)
    assert life_after(after(3), 8, folder=tmp_path / "link") == "lost"


@pytest.mark.parametrize(
    ("reason", "word"),
    [("completed", "finished"), ("stopped by SIGTERM", "stopped"), ("failed: no memory", "failed")],
)
def test_one_word_says_how_a_run_ended(reason: str, word: str) -> None:
    state = after(3)
    state.apply(Teller(state.last_time_ns).tell(RunFinished(reason=reason)))
    assert word_of(state, "over") == word


def test_one_word_says_what_a_run_does_or_that_it_says_nothing() -> None:
    lives: list[Life] = ["at work", "silent", "lost"]
    assert [word_of(after(3), life) for life in lives] == ["training", "silent", "lost"]
