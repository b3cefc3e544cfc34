import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import (
    build_evaluations,
    build_imported,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.confidence import confidence_of
from tandem.observe.series.columns import Series
from tandem.observe.verdicts.imported_duration import ToldTime, last_word, tell_time

SECONDS = [np.nan, 1.5, 1.5, np.nan, 1.5]


def printed(*, end_s: float = 700.0, restarts: int = 0, first: int = 0, times: str = "steps") -> Series:
    """Lines of five times a hundred steps: a start-up of 50 s, one evaluation of 20 s, then what `end_s` has more."""
    at = 50.0 + np.array([0.0, 150.0, 300.0, 470.0, 620.0])
    starts = [(0.0, build_start(step=first, max_steps=1000))]
    starts += [
        (680.0 + number, build_start(step=400, resumed_from="/there/model")) for number in range(restarts)
    ]
    return build_series(
        steps=build_steps(5, first=first, every=100, duration_s=SECONDS, time_s=at),
        evaluations=build_evaluations([first, first + 201], [9.0, 5.0], duration_s=20.0)[1:],
        imported=build_imported(times=times),
        starts=tuple(starts),
        end_s=end_s,
        is_closed=False,
        ended="",
    )


def told(series: Series) -> ToldTime:
    found = tell_time(series)
    assert found is not None
    return found


def test_the_parts_are_what_was_printed_and_make_up_the_whole() -> None:
    found = told(printed(end_s=670.0))
    assert found.whole_s == 670.0
    assert [each.value for each in found.evidence] == pytest.approx([670.0, 600.0, 20.0, 50.0])
    assert found.answer.startswith("11 min 10 s, put together")
    assert "400 steps at their mean times 10 min 00 s (100 of them taken at the median)" in found.answer
    assert "1 evaluation 20 s" in found.answer
    assert "start-up, and what was evaluated then) 50 s." in found.answer
    assert confidence_of(found.grounds) == "medium"


def test_what_is_more_than_the_parts_is_not_hidden() -> None:
    assert "not told apart 30 s" in told(printed(end_s=700.0)).answer


def test_after_a_restart_steps_done_again_and_pauses_are_named_and_trusted_less() -> None:
    found = told(printed(end_s=1270.0, restarts=1))
    assert "done again after a restart, or stood still before it, 10 min 00 s" in found.answer
    assert "It was started 2 times, again from step 400" in found.answer
    assert "only where the log has a time of day" in found.answer
    assert confidence_of(found.grounds) == "low"


def test_a_log_without_its_head_gives_a_lower_bound() -> None:
    found = told(printed(end_s=670.0, first=1000))
    assert found.answer.startswith("At least ")
    assert "start-up" not in found.answer


def test_times_that_mean_nothing_leave_the_sum_of_the_steps_as_a_lower_bound() -> None:
    found = told(printed(end_s=5.0, times="none"))
    assert found.answer.startswith("At least 10 min 20 s")


def test_a_start_up_alone_is_told_and_nothing_at_all_is_not() -> None:
    one = build_steps(1, first=0, duration_s=np.nan, time_s=np.array([50.0]))
    parts = {"steps": one, "imported": build_imported(), "starts": ((0.0, build_start()),)}
    assert told(build_series(**parts, end_s=50.0)).whole_s == 50.0
    assert tell_time(build_series(**parts, end_s=0.0)) is None


def test_an_end_is_told_only_where_the_files_have_one() -> None:
    assert last_word(build_series()).startswith("It ended (reached 1,000 steps)")
    assert "do not tell whether the run did" in last_word(printed())
