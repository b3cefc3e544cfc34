import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import (
    build_checkpoint,
    build_evaluations,
    build_imported,
    build_process,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.series.columns import Marked, Series, Steps
from tandem.observe.spent import pauses, spend
from tandem.runlog.event import Event, StageFinished, TrainingFinished, WorkersLost


def mark(time_s: float, event: Event) -> Marked:
    return Marked(time_s=time_s, rank=0, host=None, event=event)


def restarted(*events: tuple[float, Event], redone_s: float = 0.0) -> Series:
    """Fifty steps until second 30, a restart at second 90, fifty more."""
    steps: Steps = build_steps(100)
    times = steps.time_s.copy()
    times[50:] += 60.0
    starts = ((5.0, build_start()), (90.0, build_start(step=50)))
    marks = tuple(mark(*each) for each in events)
    return build_series(
        steps=build_steps(100, time_s=times), starts=starts, marks=marks, end_s=115.0, redone_s=redone_s
    )


def test_the_parts_make_up_the_wall_time() -> None:
    seconds = np.full(100, 0.5)
    seconds[0] = 4.5
    stages = tuple(
        mark(2.0, StageFinished(stage="clean", duration_s=1.5, counts={}, reused=reused))
        for reused in (False, True)
    )
    series = build_series(
        steps=build_steps(100, duration_s=seconds),
        evaluations=build_evaluations([50, 100], [3.0, 2.0]),
        checkpoints=(build_checkpoint(100),),
        marks=stages,
        end_s=65.0,
    )
    spent = spend(series)
    assert spent.training_s == pytest.approx(50.0)
    assert spent.evaluation_s == pytest.approx(4.0)
    assert spent.checkpoint_s == pytest.approx(0.125)
    assert spent.preparation_s == pytest.approx(1.5)
    assert spent.start_s == pytest.approx(3.5 + 4.0)
    assert spent.whole_s == pytest.approx(65.0)


def test_time_from_a_loss_to_the_next_start_is_lost() -> None:
    lost = WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed by SIGKILL")
    spent = spend(restarted((60.0, lost), (70.0, build_process()), redone_s=20.0))
    assert spent.lost_s == pytest.approx(60.0)
    assert spent.stopped_s == 0
    assert spent.rest_s == pytest.approx(0.0)


def test_time_between_an_orderly_end_and_a_resume_is_not_lost() -> None:
    finished = TrainingFinished(step=50, tokens=0, reason="asked", duration_s=25.0)
    spent = spend(restarted((31.0, finished), (80.0, build_process())))
    assert spent.lost_s == 0
    assert spent.stopped_s == pytest.approx(49.0)
    assert spent.start_s == pytest.approx(5.0 + 10.0)


def test_a_run_that_was_killed_and_resumed_lost_its_redone_steps_and_stood_still() -> None:
    spent = spend(restarted((80.0, build_process()), redone_s=12.0))
    assert spent.lost_s == pytest.approx(12.0 + 10.0)
    assert spent.stopped_s == pytest.approx(50.0 - 12.0)


def test_a_run_without_a_step_spent_all_on_its_start() -> None:
    spent = spend(build_series(steps=build_steps(0), starts=(), end_s=7.0))
    assert spent.start_s == pytest.approx(7.0)
    assert spent.training_s == 0


def test_imported_steps_without_a_time_of_their_own_go_at_the_pace_of_the_others() -> None:
    seconds = np.array([np.nan, 1.5, 1.5, np.nan, 1.5])
    at = np.array([0.0, 150.0, 300.0, 500.0, 650.0])
    series = build_series(
        steps=build_steps(5, first=0, every=100, duration_s=seconds, time_s=at),
        imported=build_imported(times="wall"),
        starts=((0.0, build_start()),),
        end_s=650.0,
    )
    spent = spend(series)
    assert spent.training_s == pytest.approx(600.0)
    assert spent.rest_s == pytest.approx(50.0)


def test_work_before_the_first_checkpoint_is_lost_once_however_often_it_is_done_again() -> None:
    lost = WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed by SIGKILL")
    times = 60.0 + build_steps(100).time_s
    series = build_series(
        steps=build_steps(100, time_s=times),
        starts=tuple((at, build_start()) for at in (5.0, 40.0, 65.0)),
        marks=(mark(30.0, lost), mark(55.0, lost)),
        end_s=115.0,
    )
    spent = spend(series)
    assert spent.lost_s == pytest.approx(60.0)
    assert spent.rest_s == pytest.approx(0.0)


def test_pauses_are_those_in_which_nothing_ran() -> None:
    ended = TrainingFinished(step=50, tokens=1, reason="asked to stop", duration_s=25.0)
    assert pauses(restarted((31.0, ended))) == [(90.0, 59.0)]
    lost = WorkersLost(attempt=1, exit_code=-9, rank=1, reason="killed")
    assert pauses(restarted((31.0, lost))) == [(90.0, 0.0)]
