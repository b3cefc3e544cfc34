from dataclasses import replace

import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import (
    build_evaluations,
    build_imported,
    build_ranks,
    build_recipe,
    build_series,
    build_start,
    build_steps,
)

from tandem.observe.finding import Finding
from tandem.observe.series.columns import Series
from tandem.observe.verdicts.duration import judge, judge_duration

HOUR_NS = 3600 * 10**9


def value(finding: Finding, name: str) -> float:
    (found,) = (each.value for each in finding.evidence if each.name == name)
    assert isinstance(found, float)
    return found


def ended_ns(series: Series) -> int:
    return series.begun_ns + int(series.end_s * 1e9)


def going_on() -> Series:
    return build_series(
        steps=build_steps(1000),
        evaluations=build_evaluations([500, 1000], [3.0, 2.0]),
        starts=((5.0, build_start(max_steps=3000)),),
        is_closed=False,
        ended="",
        finished=None,
    )


def test_an_ended_run_is_told_by_its_wall_time_and_where_it_went() -> None:
    steps = build_steps(7200)
    series = build_series(
        steps=steps,
        ranks=build_ranks(steps, ranks=4, hosts=("a", "a", "b", "b")),
        starts=((5.0, build_start(ranks=4)),),
        end_s=3625.0,
    )
    finding = judge(series)
    assert (finding.number, finding.key, finding.verdict, finding.confidence) == (
        1,
        "duration",
        "measured",
        "high",
    )
    assert finding.answer.startswith("1 h 00 min of wall time: training 99.3 %")
    assert "It ended after 7,200 steps: reached 1,000 steps." in finding.answer
    assert value(finding, "host-hours") == pytest.approx(2 * 3625 / 3600)
    assert value(finding, "GPU-hours") == pytest.approx(4 * 3625 / 3600)
    assert "price" in finding.missing[0]


def test_a_price_in_the_recipe_makes_a_cost() -> None:
    recipe = {**build_recipe(), "telemetry": {"price_per_host_hour": 3.0}}
    finding = judge(build_series(recipe=recipe))
    assert value(finding, "cost") == pytest.approx(3.0 * value(finding, "host-hours"))
    assert not any("price" in each for each in finding.missing)


def test_a_price_makes_a_cost() -> None:
    series = build_series(end_s=7200.0)
    finding = judge_duration(series, now_ns=ended_ns(series), price_per_host_hour=3.0)
    assert value(finding, "cost") == pytest.approx(6.0)
    assert finding.missing == ()


def test_a_run_that_goes_on_is_told_with_what_is_left() -> None:
    series = going_on()
    finding = judge_duration(series, now_ns=ended_ns(series) + 10**9)
    assert "It goes on, after 1,000 steps" in finding.answer
    assert value(finding, "time left") == pytest.approx(2000 * (0.5 + 4 / 1000))


def test_a_run_that_fell_silent_is_not_said_to_go_on() -> None:
    series = going_on()
    finding = judge_duration(series, now_ns=ended_ns(series) + HOUR_NS)
    assert "was killed" in finding.answer
    assert "goes on," not in finding.answer
    assert value(finding, "time that was left") > 0


def test_the_rule_for_tokens_shortens_what_is_left() -> None:
    series = build_series(
        starts=((5.0, build_start(max_steps=3000, max_tokens=1100 * 25_000)),), is_closed=False, ended=""
    )
    finding = judge_duration(series, now_ns=ended_ns(series))
    assert value(finding, "time left") == pytest.approx(50.0)


def test_cpus_have_no_gpu_hours() -> None:
    finding = judge(build_series(starts=((5.0, build_start(device="cpu")),)))
    assert all(each.name != "GPU-hours" for each in finding.evidence)


def test_time_that_no_record_explains_lowers_the_trust() -> None:
    assert judge(build_series(end_s=700.0)).confidence == "medium"
    assert judge(build_series(end_s=3000.0)).confidence == "low"


def test_a_clock_that_was_set_is_said_and_takes_the_confidence() -> None:
    finding = judge(build_series(set_s=30.0))
    assert finding.confidence == "medium"
    assert "set, or its host asleep, for 30 s" in finding.doubt


@pytest.mark.parametrize("ahead_s", [7200.0, -7200.0])
def test_a_run_whose_clock_was_set_still_goes_on(ahead_s: float) -> None:
    series = replace(going_on(), set_s=7200.0, ahead_s=ahead_s)
    now_ns = ended_ns(series) + round(1e9 * ahead_s)
    assert "It goes on" in judge_duration(series, now_ns=now_ns + 10**9).answer
    assert "was killed" in judge_duration(series, now_ns=now_ns + HOUR_NS).answer


def test_an_imported_log_without_a_clock_is_added_up() -> None:
    series = build_series(
        steps=build_steps(190, first=0, every=100, duration_s=1.685),
        imported=build_imported({"hosts": 2, "gpus": 4}),
        starts=((0.0, build_start(max_steps=300_000)),),
        is_closed=False,
        ended="",
        end_s=32_000.0,
    )
    finding = judge(series)
    assert (finding.verdict, finding.confidence) == ("measured", "medium")
    assert finding.answer.startswith("8 h 53 min, put together from what the tool printed")
    assert "281,100 of the planned steps" in finding.answer
    assert value(finding, "GPU-hours") == pytest.approx(4 * 32_000 / 3600)
    assert "clock" in finding.missing[0]


def test_an_imported_run_that_ended_has_nothing_before_it() -> None:
    series = build_series(
        steps=build_steps(9, first=0, every=100),
        imported=build_imported(),
        starts=((0.0, build_start(max_steps=1000)),),
    )
    assert "planned steps" not in judge(series).answer


def test_event_files_of_another_tool_do_not_say_whether_the_run_ended() -> None:
    series = build_series(
        steps=build_steps(50, every=100, first=100),
        imported=build_imported(tool="tensorboard", times="wall"),
        starts=((0.0, build_start(max_steps=0)),),
        is_closed=False,
        ended="",
    )
    now, later = (judge_duration(series, now_ns=ended_ns(series) + wait) for wait in (0, HOUR_NS))
    assert now == later
    assert "The files end after step 5,000 and do not tell whether the run did." in now.answer
    assert "killed" not in now.answer
    assert "from the first time in the files to the last" in now.answer


def test_an_imported_log_without_any_time_cannot_tell() -> None:
    steps = build_steps(10, first=100, every=100, duration_s=np.nan)
    finding = judge(build_series(steps=steps, imported=build_imported(times="none")))
    assert (finding.verdict, finding.confidence) == ("cannot tell", "none")


def test_a_run_without_a_step_is_told_all_the_same() -> None:
    finding = judge(build_series(steps=build_steps(0), starts=(), end_s=30.0))
    assert "no step" in finding.answer
    assert "start-up and compiling 100.0 %" in finding.answer
