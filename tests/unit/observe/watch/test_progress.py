import math
from dataclasses import replace

import pytest
from tests.unit.observe.story import TOKENS, Teller, checkpoint, finished, started, step_event, training

from tandem.observe.watch.life import Life
from tandem.observe.watch.progress import (
    Progress,
    equipment_of,
    numbers_of,
    progress_of,
    share_text,
    status,
    way_of,
)
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import Event, RunFinished, RunImported, RunStarted, StageStarted, WorkersLost

NANO = 1_000_000_000


def after(steps: int, *, max_tokens: int = 0, max_minutes: float = 0.0) -> WatchState:
    teller, state = Teller(), WatchState()
    state.apply(teller.tell(started(max_tokens=max_tokens, max_minutes=max_minutes)))
    for number in range(1, steps + 1):
        state.apply(teller.step(number))
    return state


def progress_at_work(state: WatchState) -> Progress | None:
    return progress_of(state, life="at work")


def test_before_training_there_is_no_progress() -> None:
    assert progress_of(WatchState(), life="at work") is None


def test_before_the_first_step_the_time_left_is_not_known() -> None:
    progress = progress_at_work(after(0))
    assert progress is not None
    assert (progress.share, progress.text, progress.left_s) == (0, "step 0 of 1,000", None)


def test_the_time_left_follows_from_the_pace() -> None:
    progress = progress_at_work(after(250))
    assert progress is not None
    assert (progress.share, progress.text) == (0.25, "step 250 of 1,000")
    assert progress.left_s == pytest.approx(750 * 0.25)


def test_the_time_left_includes_evaluations_and_checkpoints() -> None:
    state = WatchState()
    for record in training(Teller(), steps=200):
        state.apply(record)
    progress = progress_at_work(state)
    assert progress is not None
    assert progress.left_s == pytest.approx(4 * (50 + 10 + 0.5))


def test_the_stop_rule_that_comes_first_is_shown() -> None:
    progress = progress_at_work(after(100, max_tokens=200 * TOKENS, max_minutes=60))
    assert progress is not None
    assert progress.text == "step 100, 2.5 million of 5.0 million tokens"
    assert progress.share == 0.5
    assert progress.left_s == pytest.approx(25)


def test_a_limit_in_minutes_is_shown_when_it_comes_first() -> None:
    progress = progress_at_work(after(120, max_minutes=2))
    assert progress is not None
    assert (progress.text, progress.share, progress.left_s) == ("step 120, 0.5 of 2 min", 0.25, 90)


def test_time_that_a_restart_made_vain_is_not_counted_by_a_limit_in_minutes() -> None:
    teller, state = Teller(), WatchState()
    limited = started(max_steps=100_000, max_minutes=2)
    records = [
        teller.tell(limited),
        *(teller.step(step) for step in range(1, 101)),
        teller.tell(checkpoint(100)),
    ]
    records += [teller.step(step) for step in range(101, 201)]
    records += [teller.tell(replace(limited, step=100, tokens=100 * TOKENS))]
    records += [teller.step(step) for step in range(101, 111)]
    for record in records:
        state.apply(record)
    progress = progress_at_work(state)
    assert progress is not None
    assert progress.left_s == pytest.approx(120 - 110 * 0.25 - 0.5)
    assert state.spent.total_s == pytest.approx(210 * 0.25 + 0.5)


def test_a_step_or_two_after_a_start_the_time_left_is_not_known_yet() -> None:
    lefts = [progress_at_work(after(steps)) for steps in (9, 10)]
    assert [each is not None and each.left_s is not None for each in lefts] == [False, True]


def test_a_resumed_run_has_no_time_left_before_its_pace_is_known_again() -> None:
    state = after(300)
    state.apply(Teller(state.last_time_ns).tell(started(200)))
    progress = progress_at_work(state)
    assert progress is not None
    assert (progress.text, progress.left_s) == ("step 200 of 1,000", None)


@pytest.mark.parametrize(
    "event",
    [
        WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed"),
        RunStarted(
            run="first", tandem="0", command=(), recipe="", world_size=2, host="a", python="3", torch="2"
        ),
        StageStarted(stage="clean"),
        finished(300),
    ],
)
def test_a_run_that_does_not_train_has_no_time_left(event: Event) -> None:
    state = after(300)
    state.apply(Teller(state.last_time_ns).tell(event))
    progress = progress_at_work(state)
    assert progress is not None
    assert progress.left_s is None


@pytest.mark.parametrize("life", ["silent", "lost"])
def test_nobody_knows_when_a_run_that_says_nothing_will_end(life: Life) -> None:
    progress = progress_of(after(300), life=life)
    assert progress is not None
    assert (progress.share, progress.left_s) == (0.3, None)


def test_without_a_stop_rule_there_is_no_progress_but_a_way() -> None:
    state, teller = WatchState(), Teller()
    state.apply(teller.tell(started(max_steps=0)))
    assert way_of(state, progress_at_work(state)) == "no step yet"
    state.apply(teller.step(1))
    assert progress_at_work(state) is None
    assert way_of(state, None) == "step 1"


def test_all_of_the_way_is_done_only_at_its_end() -> None:
    shares = [0.0, 0.29, 0.57, 0.999, 999_999_999 / 1_000_000_000, 1.0]
    assert [share_text(each) for each in shares] == ["0 %", "29 %", "57 %", "99 %", "99 %", "100 %"]


def test_wall_time_counts_pauses_as_the_report_does() -> None:
    state = after(40)
    state.apply(Teller(state.last_time_ns).tell(RunFinished(reason="stopped by SIGTERM"), after_s=5))
    state.apply(Teller(state.last_time_ns).tell(started(40), after_s=3_600))
    assert state.spent.total_s == 10
    assert numbers_of(state)["wall time"] == "1 h 00 min"


def test_the_loss_is_of_the_last_tenth_of_the_steps() -> None:
    teller, state = Teller(), WatchState()
    for step in range(1, 41):
        state.apply(teller.step(step, loss=9.0 if step <= 36 else 5.0))
    assert numbers_of(state)["loss"] == "5.000"
    assert numbers_of(state)["nll"] == "4.000"


def test_what_is_not_known_of_the_equipment_is_left_out() -> None:
    state, teller = WatchState(), Teller()
    state.apply(teller.tell(started()))
    assert equipment_of(state) == "2 ranks, cuda bf16 · 60.9 million parameters"
    state.apply(teller.tell(replace(started(), ranks=0, device="", precision="")))
    assert equipment_of(state) == "60.9 million parameters"
    state.apply(teller.tell(replace(started(), parameters=0, precision="")))
    assert equipment_of(state) == "2 ranks, cuda"


def imported(times: str) -> WatchState:
    teller, state = Teller(), WatchState()
    told = RunImported(tool="tensorboard", files=(), times=times, step_kind="each", facts={})
    state.apply(teller.tell(told))
    state.apply(teller.tell(started()))
    for number in range(1, 51):
        step = replace(step_event(number), learning_rate=math.nan, duration_s=math.nan)
        state.apply(teller.tell(step, after_s=1))
    return state


def test_an_imported_run_is_imported_and_has_no_way_to_go() -> None:
    state = imported("wall")
    assert progress_at_work(state) is None
    assert status(state, life="over", now_ns=state.last_time_ns) == "imported"


def test_what_another_tool_did_not_tell_is_a_dash() -> None:
    numbers = numbers_of(imported("wall"))
    assert [numbers[name] for name in ("learning rate", "target tokens/s", "wall time")] == ["–", "–", "50 s"]
    assert numbers_of(imported("steps"))["wall time"] == "–"


def test_the_status_says_what_the_run_does() -> None:
    state, teller = after(3), Teller()
    assert status(state, life="at work", now_ns=state.last_time_ns) == "training"
    state.apply(teller.tell(StageStarted(stage="clean")))
    assert status(state, life="at work", now_ns=state.last_time_ns) == "preparing data: clean"


def test_the_status_says_for_how_long_nothing_was_heard_and_what_is_known_of_it() -> None:
    state = after(3)
    later_ns = state.last_time_ns + 45 * NANO
    assert status(state, life="silent", now_ns=later_ns) == "silent for 45 s (was training)"
    gone = "lost for 45 s: its process is gone without a word (was training)"
    assert status(state, life="lost", now_ns=later_ns) == gone


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("reached 3 steps", "finished: reached 3 steps"),
        ("stopped by SIGTERM", "stopped by SIGTERM"),
        ("asked to stop (SIGUSR1)", "stopped: asked to stop (SIGUSR1)"),
        ("failed: no memory", "failed: no memory"),
    ],
)
def test_the_status_of_a_run_that_ended_says_how(reason: str, told: str) -> None:
    state = after(3)
    state.apply(Teller(state.last_time_ns).tell(RunFinished(reason=reason)))
    assert status(state, life="over", now_ns=state.last_time_ns) == told
