from dataclasses import replace

import pytest
from tests.unit.observe.story import TOKENS, Teller, checkpoint, finished, started, training

from tandem.observe.watch.progress import is_silent, progress_of, status
from tandem.observe.watch.state import WatchState
from tandem.runlog.event import EvaluationStarted, StageStarted

NANO = 1_000_000_000


def after(steps: int, *, max_tokens: int = 0, max_minutes: float = 0.0) -> WatchState:
    teller, state = Teller(), WatchState()
    state.apply(teller.tell(started(max_tokens=max_tokens, max_minutes=max_minutes)))
    for number in range(1, steps + 1):
        state.apply(teller.step(number))
    return state


def test_before_training_there_is_no_progress() -> None:
    assert progress_of(WatchState()) is None


def test_before_the_first_step_the_time_left_is_not_known() -> None:
    progress = progress_of(after(0))
    assert progress is not None
    assert (progress.share, progress.text, progress.left_s) == (0, "step 0 of 1,000", None)


def test_the_time_left_follows_from_the_pace() -> None:
    progress = progress_of(after(250))
    assert progress is not None
    assert (progress.share, progress.text) == (0.25, "step 250 of 1,000")
    assert progress.left_s == pytest.approx(750 * 0.25)


def test_the_time_left_includes_evaluations_and_checkpoints() -> None:
    state = WatchState()
    for record in training(Teller(), steps=200):
        state.apply(record)
    progress = progress_of(state)
    assert progress is not None
    assert progress.left_s == pytest.approx(4 * (50 + 10 + 0.5))


def test_the_stop_rule_that_comes_first_is_shown() -> None:
    progress = progress_of(after(100, max_tokens=200 * TOKENS, max_minutes=60))
    assert progress is not None
    assert progress.text == "step 100, 2.5 million of 5.0 million tokens"
    assert progress.share == 0.5
    assert progress.left_s == pytest.approx(25)


def test_a_limit_in_minutes_is_shown_when_it_comes_first() -> None:
    progress = progress_of(after(120, max_minutes=2))
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
    records += [teller.tell(replace(limited, step=100, tokens=100 * TOKENS)), teller.step(101)]
    for record in records:
        state.apply(record)
    progress = progress_of(state)
    assert progress is not None
    assert progress.left_s == pytest.approx(120 - 100 * 0.25 - 0.5 - 0.25)
    assert state.spent.total_s == pytest.approx(201 * 0.25 + 0.5)


def test_the_status_says_what_the_run_does() -> None:
    state, teller = after(3), Teller()
    assert status(state, now_ns=state.last_time_ns) == "training"
    state.apply(teller.tell(StageStarted(stage="clean")))
    assert status(state, now_ns=state.last_time_ns) == "preparing data: clean"


def test_a_run_without_news_is_silent_after_half_a_minute() -> None:
    state = after(3)
    assert not is_silent(state, now_ns=state.last_time_ns + 29 * NANO)
    assert status(state, now_ns=state.last_time_ns + 45 * NANO) == "silent for 45 s (was training)"


def test_an_evaluation_may_take_longer_before_it_counts_as_silent() -> None:
    state = after(3)
    state.apply(Teller(state.last_time_ns).tell(EvaluationStarted(step=3)))
    assert not is_silent(state, now_ns=state.last_time_ns + 200 * NANO)
    assert is_silent(state, now_ns=state.last_time_ns + 400 * NANO)


def test_a_finished_run_is_never_silent() -> None:
    state = after(3)
    state.apply(Teller(state.last_time_ns).tell(finished(3)))
    assert status(state, now_ns=state.last_time_ns + 10**6 * NANO) == "finished: reached 3 steps"
