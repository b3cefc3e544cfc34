import io
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.observe.story import RUN_STARTED, START_NS, Teller, finished, started, training, write_log

from tandem.lock import holding
from tandem.observe.watch import WatchState, can_draw, follow_run, look_at_run
from tandem.runlog.event import CheckpointFailed, RunFinished, RunImported, RunStarted, WorkersLost
from tandem.runlog.record import Record


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens in the pauses, instead of time going by."""
    turns: list[Callable[[], None]] = []
    monkeypatch.setattr(
        "tandem.observe.watch.follow.time.sleep", lambda _seconds: turns.pop(0)() if turns else None
    )
    return turns


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)


def dumb() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, height=24, _environ={"TERM": "dumb"})


def paper() -> Console:
    return Console(file=io.StringIO(), width=80)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def whole_run(teller: Teller) -> list[Record]:
    records = list(training(teller, steps=100, every=50))
    return [*records, teller.tell(finished(100)), teller.tell(RunFinished(reason="completed"))]


def test_a_finished_run_is_shown_and_left(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, whole_run(teller)[:-1])
    write_log(tmp_path, [teller.tell(RunFinished(reason="completed"))])
    console = terminal()
    state = follow_run(tmp_path, console=console)
    assert (state.step, state.doing) == (100, "finished")
    assert "finished: reached 100 steps" in text(console)


def test_a_live_run_is_followed_until_it_is_over(tmp_path: Path, waits: list[Callable[[], None]]) -> None:
    records = whole_run(Teller())
    write_log(tmp_path, records[:40])
    waits += [
        lambda: write_log(tmp_path, records[40:90]),
        lambda: None,
        lambda: write_log(tmp_path, records[90:]),
    ]
    assert follow_run(tmp_path, console=terminal()).step == 100
    assert waits == []


def test_the_caller_may_say_when_it_ends_and_what_was_written_by_then_is_read(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    records = whole_run(Teller())
    ended: list[bool] = []
    write_log(tmp_path, records[:40])

    def end() -> None:
        write_log(tmp_path, records[40:])
        ended.append(True)

    waits += [end]
    assert follow_run(tmp_path, console=terminal(), until=lambda: bool(ended)).step == 100


FAILED = RunFinished(reason="failed: rank 1 is lost")


@pytest.mark.parametrize("show", [follow_run, look_at_run])
def test_a_run_is_followed_through_its_attempts(
    tmp_path: Path, waits: list[Callable[[], None]], show: Callable[..., WatchState]
) -> None:
    teller = Teller(time.time_ns() - 3_600 * 10**9)
    first = [teller.tell(RUN_STARTED), teller.tell(started()), teller.step(1), teller.tell(FAILED)]
    lost = WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed")
    again = [teller.tell(RUN_STARTED), teller.tell(started()), teller.step(1), teller.tell(finished(1))]
    write_log(tmp_path, [teller.tell(RUN_STARTED, rank=None), *first])
    waits += [
        lambda: write_log(tmp_path, [teller.tell(lost, rank=None)]),
        lambda: write_log(tmp_path, again),
        lambda: write_log(tmp_path, [teller.tell(RunFinished(reason="completed"))]),
        lambda: write_log(tmp_path, [teller.tell(RunFinished(reason="completed"), rank=None)]),
    ]
    with holding(tmp_path):
        state = show(tmp_path, console=paper())
    assert waits == []
    assert (state.attempt, state.is_closed) == (2, True)


def test_ranks_of_another_launcher_that_failed_may_be_started_again_for_a_while(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    now = Teller(time.time_ns())
    write_log(tmp_path, [now.tell(RUN_STARTED), now.tell(started()), now.tell(FAILED)])
    waits += [
        lambda: None,
        lambda: write_log(tmp_path, [now.tell(RUN_STARTED), now.tell(started())]),
        lambda: write_log(tmp_path, [now.tell(finished(1)), now.tell(RunFinished(reason="completed"))]),
    ]
    assert follow_run(tmp_path, console=paper()).attempt == 2
    assert waits == []


def test_ranks_of_another_launcher_that_failed_long_ago_are_not_waited_for(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.tell(RUN_STARTED), teller.tell(started()), teller.tell(FAILED)])
    waits += [lambda: None, lambda: None]
    assert follow_run(tmp_path, console=paper()).ended == FAILED.reason
    assert len(waits) == 1


def test_training_that_has_finished_long_ago_is_over_without_a_farewell(tmp_path: Path) -> None:
    write_log(tmp_path, whole_run(Teller())[:-1])
    assert follow_run(tmp_path, console=terminal()).doing == "finished"


def test_a_file_gets_lines(tmp_path: Path) -> None:
    write_log(tmp_path, whole_run(Teller()))
    console = paper()
    follow_run(tmp_path, console=console)
    lines = text(console).splitlines()
    assert lines[0].startswith("training starts: ")
    assert lines[1].startswith("step 1 of 1,000 (0 %), epoch 1, loss 8.960")
    assert lines[-1].startswith("training finished at step 100")
    assert "\x1b" not in text(console)


def test_a_terminal_gets_lines_on_request(tmp_path: Path) -> None:
    write_log(tmp_path, whole_run(Teller()))
    console = terminal()
    follow_run(tmp_path, console=console, plain=True)
    assert text(console).startswith("training starts: ")


def test_a_terminal_that_cannot_draw_gets_lines(tmp_path: Path) -> None:
    write_log(tmp_path, whole_run(Teller()))
    console = dumb()
    follow_run(tmp_path, console=console)
    assert text(console).startswith("training starts: ")
    assert [can_draw(each) for each in (terminal(), dumb(), paper())] == [True, False, False]


def test_a_terminal_that_cannot_draw_breaks_lines_by_words(tmp_path: Path) -> None:
    write_log(tmp_path, whole_run(Teller()))
    narrow, whole = dumb(), paper()
    narrow.width = 40
    follow_run(tmp_path, console=narrow)
    follow_run(tmp_path, console=whole)
    assert text(narrow).split() == text(whole).split()
    assert max(map(len, text(narrow).splitlines())) <= 40
    assert max(map(len, text(whole).splitlines())) > 80


def test_an_imported_run_is_told_and_left(tmp_path: Path) -> None:
    teller = Teller()
    imported = RunImported(tool="tensorboard", files=(), times="wall", step_kind="each", facts={})
    write_log(tmp_path, [teller.tell(imported), *training(teller, steps=33)])
    console = paper()
    assert follow_run(tmp_path, console=console).doing == "imported"
    lines = text(console).splitlines()
    assert lines[0] == "imported from tensorboard"
    assert lines[-1].startswith("step 33, ")
    assert look_at_run(tmp_path, console=paper()).doing == "imported"


def test_a_run_that_falls_silent_and_is_heard_again_says_so_in_lines(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    teller = Teller(time.time_ns() - 3_600 * 10**9)
    write_log(tmp_path, list(training(teller, steps=33)))
    later = Teller(time.time_ns() + 3_600 * 10**9)
    waits += [
        lambda: None,
        lambda: write_log(tmp_path, [later.tell(started(33)), later.tell(finished(34))]),
        lambda: write_log(tmp_path, [later.tell(RunFinished(reason="completed"))]),
    ]
    console = paper()
    follow_run(tmp_path, console=console)
    lines = text(console).splitlines()
    assert lines[2].startswith("step 33 of 1,000 (3 %)")
    assert re.fullmatch(r"warning: silent for \d+ min \d\d s \(was training\)", lines[3])
    assert lines[4].startswith("heard again after ")
    assert lines[5].startswith("training goes on after step 33")
    assert len(lines) == 7


def test_a_run_that_is_resumed_is_not_called_silent_for_what_was_before(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    write_log(tmp_path, list(training(Teller(), steps=33)))
    ended: list[bool] = []
    waits += [lambda: ended.append(True)]
    console = paper()
    follow_run(tmp_path, console=console, until=lambda: bool(ended), since_ns=time.time_ns())
    assert text(console) == ""


def test_a_run_is_headed_by_the_name_of_its_folder_with_that_of_its_recipe_beside_it(tmp_path: Path) -> None:
    begun = RunStarted(
        run="demo", tandem="0", command=(), recipe="", world_size=1, host="a", python="3", torch="2"
    )
    heads = []
    for folder in ("live", "demo"):
        teller = Teller()
        write_log(tmp_path / folder, [teller.tell(begun), *whole_run(teller)])
        console = terminal()
        look_at_run(tmp_path / folder, console=console)
        heads.append(text(console).partition(" · ")[0])
    assert heads == ["live (demo)", "demo"]


def test_what_was_before_the_beginning_counts_but_is_not_told_again(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, list(training(teller, steps=60, every=50)))
    since_ns = teller.time_ns + 1
    write_log(tmp_path, [teller.tell(started(50), after_s=1), *(teller.step(step) for step in range(51, 60))])
    console = paper()
    state = follow_run(tmp_path, console=console, until=lambda: True, since_ns=since_ns)
    assert text(console).startswith("training goes on after step 50")
    assert [each.step for each in state.evaluations] == [50]


def test_troubles_are_warnings_in_the_lines(tmp_path: Path) -> None:
    write_log(tmp_path, [Teller().tell(CheckpointFailed(step=5, reason="disk\x1b full"), rank=1)])
    console = paper()
    follow_run(tmp_path, console=console, until=lambda: True)
    assert text(console) == "warning: checkpoint of step 5 could not be written: disk\\x1b full\n"


@pytest.mark.parametrize("show", [paper, terminal])
def test_the_steps_of_other_ranks_are_for_the_display_alone(
    tmp_path: Path, show: Callable[[], Console]
) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.step(step, rank=rank) for step in (1, 2) for rank in (0, 1)])
    sink = Collector()
    follow_run(tmp_path, console=show(), until=lambda: True, sinks=[sink])
    assert [record.rank for record in sink.taken] == [0, 0]


def test_a_display_splits_the_last_steps_of_all_ranks_and_passes_over_old_ones(tmp_path: Path) -> None:
    teller = Teller()
    write_log(tmp_path, [teller.tell(started())])
    write_log(tmp_path, [teller.step(step, rank=rank) for step in range(1, 9) for rank in (0, 1)])
    shown = terminal()
    follow_run(tmp_path, console=shown, until=lambda: True)
    assert "network 12%" in text(shown)
    shown = terminal()
    follow_run(tmp_path, console=shown, until=lambda: True, since_ns=teller.time_ns + 1)
    assert "waiting 12%" in text(shown)


class Collector:
    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.taken: list[Record] = []
        self.flushed: list[int] = []

    def apply(self, record: Record) -> None:
        self.taken.append(record)

    def flush(self) -> None:
        self.flushed.append(len(self.taken))


def test_sinks_get_every_record_and_are_flushed_while_the_run_goes_on(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    records = whole_run(Teller())
    write_log(tmp_path, records[:40])
    waits += [lambda: write_log(tmp_path, records[40:])]
    sink = Collector()
    follow_run(tmp_path, console=paper(), sinks=[sink])
    assert sink.taken == records
    assert sink.flushed[0] == 40
    assert sink.flushed[-1] == len(records)


def test_a_sink_that_failed_is_a_trouble_on_the_display(tmp_path: Path) -> None:
    write_log(tmp_path, [Teller(START_NS).step(1)])
    console = terminal()
    state: WatchState = follow_run(
        tmp_path, console=console, until=lambda: True, sinks=[Collector("no space for curves")]
    )
    assert "! no space for curves" in text(console)
    assert len(state.troubles) == 1


def test_a_finished_run_is_looked_at_once_and_takes_no_terminal(tmp_path: Path) -> None:
    write_log(tmp_path, whole_run(Teller()))
    console = terminal()
    state = look_at_run(tmp_path, console=console)
    assert (state.step, state.doing) == (100, "finished")
    assert text(console).count("finished: reached 100 steps") == 1
    assert "\x1b" not in text(console)


def test_a_live_run_is_looked_at_until_it_is_over_and_its_last_picture_stays(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    records = whole_run(Teller())
    write_log(tmp_path, records[:40])
    waits += [lambda: write_log(tmp_path, records[40:])]
    console = terminal()
    assert look_at_run(tmp_path, console=console).step == 100
    before, _, after = text(console).partition("\x1b[?1049l")
    assert "\x1b[?1049h" in before
    assert after.count("finished: reached 100 steps") == 1


def test_a_display_that_is_looked_at_is_the_one_that_all_records_give(tmp_path: Path) -> None:
    write_log(tmp_path, whole_run(Teller()))
    one, other = terminal(), terminal()
    look_at_run(tmp_path, console=one)
    follow_run(tmp_path, console=other)
    last = text(other).rpartition("\x1b[2K")[2]
    assert [line.rstrip() for line in last.splitlines()[1:6]] == [
        line.rstrip() for line in text(one).splitlines()[1:6]
    ]


def test_a_run_of_which_nothing_is_logged_yet_is_waited_for(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    (tmp_path / "log").mkdir()
    waits += [lambda: write_log(tmp_path, whole_run(Teller()))]
    assert look_at_run(tmp_path, console=terminal()).step == 100


def test_a_terminal_of_another_size_is_cleared_and_drawn_anew(
    tmp_path: Path, waits: list[Callable[[], None]]
) -> None:
    records = whole_run(Teller())
    write_log(tmp_path, records[:40])
    console = terminal()

    def widen() -> None:
        console.width = 120
        write_log(tmp_path, records[40:])

    waits += [widen]
    follow_run(tmp_path, console=console)
    _, _, after = text(console).partition("\x1b[2J")
    assert "finished: reached 100 steps" in after
    assert max(map(len, after.splitlines())) >= 120
