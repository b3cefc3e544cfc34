import math

import pytest
from tests.unit.observe.story import RUN_STARTED, TOKENS, Teller, finished, started, training
from tests.unit.observe.watch.host_story import sampling

from tandem.observe.watch.state import HELD_EVALUATIONS, WatchState
from tandem.runlog.event import (
    EvaluationStarted,
    RoundStarted,
    RunFinished,
    RunImported,
    StageStarted,
    WorkersLost,
)
from tandem.runlog.record import Record


def folded(*records: Record) -> WatchState:
    state = WatchState()
    for record in records:
        state.apply(record)
    return state


def test_totals_come_from_rank_0_alone() -> None:
    teller = Teller()
    state = folded(
        teller.tell(started()), *(teller.step(step, rank=rank) for step in (1, 2) for rank in (0, 1, 2))
    )
    assert (state.step, state.tokens) == (2, 2 * TOKENS)
    assert state.spent.training_s == 0.5


def test_evaluations_and_checkpoints_are_no_training_time() -> None:
    state = folded(*training(Teller(), steps=400))
    assert state.spent.training_s == 100
    assert state.spent.evaluation_s == 20
    assert state.spent.checkpoint_s == 1
    assert state.recent.tokens_per_s == TOKENS / 0.25


def test_an_evaluation_is_gathered_from_its_events() -> None:
    state = folded(*training(Teller(), steps=400))
    assert [each.step for each in state.evaluations] == [200, 400]
    last = state.evaluations[-1]
    assert last.valid_loss == pytest.approx(2.5 + 4 * math.exp(-0.8))
    assert last.probe_loss == pytest.approx(2.375 + 4 * math.exp(-0.8))
    assert last.bleu == pytest.approx(30 - 28 * math.exp(-0.8))
    assert [each.hypothesis for each in state.samples][1] == "Warum verkaufte sie das Fahrrad?"
    assert {each.step for each in state.samples} == {400}


def test_the_best_is_the_last_that_was_the_best_so_far() -> None:
    state = folded(*training(Teller(), steps=600))
    best_loss, best_bleu = state.best("loss"), state.best("bleu")
    assert best_loss is not None
    assert best_bleu is not None
    assert (best_loss.step, best_bleu.step) == (400, 600)


def test_the_state_follows_what_the_run_does() -> None:
    teller = Teller()
    state = WatchState()
    seen = []
    for record in (
        teller.tell(RUN_STARTED),
        teller.tell(StageStarted(stage="clean"), rank=None),
        teller.tell(started()),
        teller.step(1),
        teller.tell(EvaluationStarted(step=2)),
        teller.step(2),
        *list(teller.evaluation(2))[-1:],
        teller.tell(WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed"), rank=None),
        teller.tell(started(2)),
        teller.step(3),
        teller.tell(finished(4)),
        teller.step(4),
        teller.tell(RunFinished(reason="completed")),
    ):
        state.apply(record)
        seen.append(state.doing)
    assert seen == [
        "starting",
        "preparing",
        "training",
        "training",
        "evaluating",
        "evaluating",
        "training",
        "restarting",
        "training",
        "training",
        "finished",
        "finished",
        "finished",
    ]
    assert (state.recipe, state.step, state.ended, state.is_closed) == ("first", 4, "reached 4 steps", True)


def test_a_run_that_starts_again_goes_back_and_forgets_what_it_does_again() -> None:
    teller = Teller()
    records = [*training(teller, steps=650), teller.tell(started(300))]
    state = folded(*records, *(teller.step(step, loss=1.0) for step in range(301, 311)))
    assert state.step == 310
    assert state.tokens == 310 * TOKENS
    assert state.recent.loss == 1.0
    assert [each.step for each in state.evaluations] == [200]
    assert min(state.curve.values(1000)) == 1.0
    assert state.spent.training_s == pytest.approx(660 * 0.25)


def test_steps_that_go_back_without_a_word_are_followed_too() -> None:
    teller = Teller()
    state = folded(*(teller.step(step, loss=5.0) for step in (1, 2, 3)), teller.step(2, loss=1.0))
    assert state.step == 2
    assert state.recent.loss == 1.0


def test_skipped_steps_count_but_are_no_part_of_the_curve() -> None:
    teller = Teller()
    state = folded(
        teller.tell(started()), teller.step(1, loss=4.0), teller.step(2, loss=math.nan, skipped=True)
    )
    assert (state.step, state.tokens) == (2, 2 * TOKENS)
    assert state.curve.values(10) == [4.0]


def test_a_run_that_is_started_anew_is_not_over() -> None:
    teller = Teller()
    state = folded(
        teller.tell(started()),
        teller.tell(finished(9)),
        teller.tell(RunFinished(reason="x")),
        teller.tell(RUN_STARTED),
    )
    assert (state.doing, state.ended, state.is_closed) == ("starting", "", False)


FAILED = RunFinished(reason="failed: rank 1 is lost")
LOST = WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed")


def test_a_rank_that_failed_has_not_ended_a_run_that_a_command_watches_over() -> None:
    teller = Teller()
    state = folded(teller.tell(RUN_STARTED, rank=None), teller.tell(RUN_STARTED), teller.tell(started()))
    state.apply(teller.tell(FAILED))
    assert (state.doing, state.is_closed, state.attempt) == ("restarting", False, 1)
    state.apply(teller.tell(LOST, rank=None))
    assert (state.doing, state.ended, state.attempt) == ("restarting", "", 2)
    state.apply(teller.tell(RUN_STARTED))
    state.apply(teller.tell(started(2)))
    assert (state.doing, state.is_closed, state.attempt) == ("training", False, 2)
    state.apply(teller.tell(RunFinished(reason="completed")))
    assert (state.doing, state.is_closed) == ("finished", False)
    state.apply(teller.tell(RunFinished(reason="completed"), rank=None))
    assert (state.is_closed, state.attempt) == (True, 2)


def test_a_command_that_gives_up_tells_the_first_cause() -> None:
    teller = Teller()
    state = folded(teller.tell(RUN_STARTED, rank=None), teller.tell(RUN_STARTED), teller.tell(FAILED))
    state.apply(teller.tell(RunFinished(reason="failed: rank 1 was lost"), rank=None))
    assert (state.doing, state.is_closed, state.ended) == ("finished", True, FAILED.reason)


def test_attempts_are_counted_from_the_start_of_each_command() -> None:
    teller = Teller()
    state = folded(teller.tell(RUN_STARTED, rank=None), teller.tell(LOST, rank=None))
    round_ = RoundStarted(
        round=3, hosts=("a", "b"), workers={"a": 1, "b": 1}, address="", interfaces=("", "")
    )
    state.apply(teller.tell(round_, rank=None))
    assert state.attempt == 3
    state.apply(teller.tell(RUN_STARTED, rank=None))
    assert state.attempt == 1


def test_attempts_of_another_launcher_are_those_of_rank_0() -> None:
    teller = Teller()
    state = folded(teller.tell(RUN_STARTED), teller.tell(FAILED))
    assert (state.is_closed, state.is_supervised, state.attempt) == (True, False, 1)
    state.apply(teller.tell(RUN_STARTED))
    assert (state.is_closed, state.attempt) == (False, 2)
    state.apply(teller.tell(RUN_STARTED, rank=1))
    assert state.attempt == 2


def test_another_launcher_may_go_on_with_what_a_command_ended() -> None:
    teller = Teller()
    state = folded(teller.tell(RUN_STARTED, rank=None), teller.tell(LOST, rank=None))
    state.apply(teller.tell(RunFinished(reason="stopped by SIGTERM"), rank=None))
    state.apply(teller.tell(RUN_STARTED))
    assert (state.is_supervised, state.is_closed, state.attempt) == (False, False, 1)


def test_memory_is_bounded_however_many_evaluations_there_are() -> None:
    teller, state = Teller(), WatchState()
    for step in range(HELD_EVALUATIONS + 50):
        state.apply(teller.tell(EvaluationStarted(step=step)))
    assert len(state.evaluations) == HELD_EVALUATIONS


def test_a_sampler_that_goes_on_does_not_speak_for_the_run() -> None:
    teller = Teller()
    state = folded(teller.tell(started()), teller.step(1))
    spoke_ns = state.last_time_ns
    for record in sampling("h1", seconds=500, start_ns=spoke_ns):
        state.apply(record)
    assert state.last_time_ns == spoke_ns
    assert len(state.hosts["h1"].moments) == 120


def test_a_step_that_other_tools_call_0_forgets_nothing() -> None:
    teller = Teller()
    state = folded(*teller.evaluation(0), teller.step(0), teller.step(1))
    assert [each.step for each in state.evaluations] == [0]


def test_an_evaluation_that_is_made_again_is_made_anew() -> None:
    teller = Teller()
    state = folded(*teller.evaluation(5), teller.tell(EvaluationStarted(step=5)))
    (held,) = state.evaluations
    assert held.bleu is None


def test_a_run_keeps_the_name_of_its_folder_beside_that_of_its_recipe() -> None:
    state = WatchState(run="live")
    state.apply(Teller().tell(RUN_STARTED))
    assert (state.run, state.recipe) == ("live", "first")


def test_an_imported_run_stays_imported_whatever_comes_after() -> None:
    teller = Teller()
    told = RunImported(tool="tensorboard", files=(), times="wall", step_kind="each", facts={})
    state = folded(
        teller.tell(told),
        teller.tell(RUN_STARTED),
        *training(teller, steps=20, every=10),
        teller.tell(started(5)),
    )
    assert (state.doing, state.is_closed, state.ended) == ("imported", True, "")


def test_wall_time_is_from_the_first_record_of_any_log_to_the_last() -> None:
    teller = Teller()
    state = folded(teller.tell(started()), teller.step(1), teller.step(2))
    for record in sampling("h1", seconds=60, start_ns=state.begun_ns - 20 * 1_000_000_000):
        state.apply(record)
    assert state.wall_s == 60
