import numpy as np
from tests.unit.observe.verdicts.series_story import (
    build_imported,
    build_process,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.series.columns import Marked
from tandem.observe.steady import lost_lines, steady_steps, steps_behind, unlogged_steps
from tandem.runlog.event import EventsDropped


def test_steps_without_a_line_are_counted_wherever_they_are() -> None:
    steps = build_steps(10, first=3, every=2)
    started = ((5.0, build_start()),)
    assert unlogged_steps(build_series(steps=steps, starts=started, finished=None)) == 2 + 9
    assert unlogged_steps(build_series(steps=steps, starts=started), is_between=True) == 9
    assert unlogged_steps(build_series(steps=build_steps(50), starts=started, finished=None)) == 0
    # Another tool logs some of its steps only.
    assert unlogged_steps(build_series(steps=steps, imported=build_imported({}), starts=())) == 0


def test_only_lines_of_the_file_that_speaks_for_the_run_are_lost_of_it() -> None:
    dropped = [
        Marked(time_s=1.0, rank=rank, host=None, event=EventsDropped(count=count, since_ns=1))
        for rank, count in ((0, 3), (1, 40))
    ]
    assert lost_lines(build_series(marks=tuple(dropped), damaged=7, led_damaged=2)) == 5


def test_first_steps_are_left_out_while_they_are_slow() -> None:
    seconds = np.full(50, 0.5)
    seconds[:3] = (9.0, 4.0, 2.0)
    steady = steady_steps(build_series(steps=build_steps(50, duration_s=seconds)))
    assert np.flatnonzero(~steady).tolist() == [0, 1, 2]


def test_the_first_step_is_left_out_after_every_start_even_if_it_is_not_slow() -> None:
    starts = ((5.0, build_start()), (30.0, build_start(step=20)))
    steady = steady_steps(build_series(steps=build_steps(50), starts=starts))
    assert np.flatnonzero(~steady).tolist() == [0, 20]


def test_a_run_that_is_slow_later_keeps_its_slow_steps() -> None:
    seconds = np.full(50, 0.5)
    seconds[30] = 9.0
    assert steady_steps(build_series(steps=build_steps(50, duration_s=seconds)))[30]


def test_steps_without_a_time_are_not_steady() -> None:
    assert not steady_steps(build_series(steps=build_steps(5, duration_s=np.nan))).any()


def test_a_point_of_an_imported_run_stands_for_the_steps_since_the_one_before() -> None:
    steps = build_steps(4, first=0, every=100)
    assert steps_behind(build_series(steps=steps, imported=build_imported())).tolist() == [0, 100, 100, 100]
    assert steps_behind(build_series(steps=steps)).tolist() == [1, 1, 1, 1]


def test_first_steps_are_slow_by_the_pace_of_their_own_start() -> None:
    seconds = np.r_[np.full(50, 3.0), np.full(150, 1.0)]
    series = build_series(
        steps=build_steps(200, duration_s=seconds),
        starts=((5.0, build_start()), (200.0, build_start(step=50))),
    )

    assert np.flatnonzero(~steady_steps(series)).tolist() == [0, 50]


def test_a_process_whose_start_of_training_is_lost_has_a_first_step_too() -> None:
    seconds = np.full(50, 0.5)
    seconds[20] = 30.0
    steps = build_steps(50, duration_s=seconds)
    begun = Marked(time_s=float(steps.time_s[19]) + 1.0, rank=0, host=None, event=build_process())

    steady = steady_steps(build_series(steps=steps, marks=(begun,)))

    assert np.flatnonzero(~steady).tolist() == [0, 20]
