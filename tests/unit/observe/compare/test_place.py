"""Places of steps and evaluations on the three axes."""

import numpy as np
from tests.unit.observe.compare.run_story import build_run
from tests.unit.observe.verdicts.series_story import (
    START_S,
    TOKENS,
    build_imported,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.compare.place import evaluation_places, step_places
from tandem.observe.series.columns import Marked, Series
from tandem.runlog.event import RunStarted, TrainingFinished, WorkersLost


def places(series: Series, against: str) -> list[float]:
    found = step_places(series, against)  # type: ignore[arg-type]
    assert found is not None
    return [float(value) for value in found]


def test_tokens_count_on_from_what_was_trained_before_the_log() -> None:
    starts = ((START_S, build_start(step=100, tokens=7_000)),)
    series = build_series(steps=build_steps(3, first=101), starts=starts)
    assert places(series, "tokens") == [7_000 + TOKENS, 7_000 + 2 * TOKENS, 7_000 + 3 * TOKENS]


def restarted(*events: tuple[float, object]) -> Series:
    """Two steps, a break of a hundred seconds, two more."""
    steps = build_steps(4, duration_s=1.0)
    times = steps.time_s + np.array([0.0, 0.0, 100.0, 100.0])
    marks = tuple(Marked(time_s=at, rank=0, host=None, event=event) for at, event in events)  # type: ignore[arg-type]
    return build_series(
        steps=build_steps(4, duration_s=1.0, time_s=times),
        starts=((START_S, build_start()), (107.0, build_start(step=2))),
        marks=marks,
        end_s=109.0,
    )


def test_time_that_a_restart_takes_is_training_time() -> None:
    lost = WorkersLost(attempt=1, exit_code=-9, rank=0, reason="killed")
    assert places(restarted((8.0, lost)), "time") == [1.0, 2.0, 103.0, 104.0]


def test_a_pause_between_an_end_and_a_resume_is_not() -> None:
    ended = TrainingFinished(step=2, tokens=2 * TOKENS, reason="asked to stop", duration_s=2.0)
    began = RunStarted(
        run="x", tandem="1", command=(), recipe="", world_size=1, host="a", python="3", torch="2"
    )
    found = places(restarted((7.0, ended), (106.0, began)), "time")
    assert found[:2] == [1.0, 2.0]
    assert found[2:] == [4.0, 5.0]


def test_evaluations_lie_where_their_steps_do() -> None:
    series = build_run()
    found = evaluation_places(series, series.evaluations, "tokens")
    assert found is not None
    assert found.tolist() == [step * TOKENS for step in (200, 400, 600, 800, 1000)]


def test_a_log_without_a_clock_has_no_time() -> None:
    series = build_series(imported=build_imported(times="none"))
    assert step_places(series, "time") is None
    assert evaluation_places(series, (), "time") is None


def test_points_that_stand_for_many_steps_count_their_tokens_so_often() -> None:
    series = build_series(
        steps=build_steps(3, first=100, every=100), imported=build_imported(), starts=((0.0, build_start()),)
    )
    assert places(series, "tokens") == [100 * TOKENS, 200 * TOKENS, 300 * TOKENS]


def test_without_tokens_there_is_no_such_axis() -> None:
    assert (
        step_places(build_series(steps=build_steps(3, target_tokens=np.zeros(3, np.int64))), "tokens") is None
    )
