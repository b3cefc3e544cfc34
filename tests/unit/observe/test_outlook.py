import numpy as np
import pytest
from tests.unit.observe.verdicts.curve_story import Story
from tests.unit.observe.verdicts.series_story import (
    build_imported,
    build_series,
    build_start,
    build_steps,
    rate,
)

from tandem.observe.outlook import read_outlook, read_rates
from tandem.observe.rates import Plan

STEPS = np.arange(50.0, 1001.0, 50.0)


@pytest.mark.parametrize(
    ("kind", "cooldown"), [("cosine", 0), ("linear", 0), ("constant", 200), ("inverse_sqrt", 200)]
)
def test_a_plan_with_an_end_is_ahead_until_it_is_reached(kind: str, cooldown: int) -> None:
    story = Story(kind=kind, cooldown=cooldown, planned=1000, steps=500)
    outlook = read_outlook(story.series())
    assert outlook.is_known
    assert not outlook.is_complete
    assert outlook.ahead > 0.4
    assert "fall to zero up to step 1,000" in outlook.sentence
    done = read_outlook(Story(kind=kind, cooldown=cooldown).series())
    assert done.is_complete
    assert done.ahead == pytest.approx(0.0, abs=1e-6)
    assert done.sentence == ""


@pytest.mark.parametrize("kind", ["inverse_sqrt", "transformer", "constant"])
def test_a_law_without_an_end_has_no_fall_ahead(kind: str) -> None:
    outlook = read_outlook(Story(kind=kind, planned=5000).series())
    assert (outlook.ahead, outlook.never_decays) == (0.0, kind == "constant")
    assert outlook.shares(STEPS) is None


def test_rates_that_leave_the_plan_leave_nothing_known_of_what_comes() -> None:
    schedule = "cosine: 0.0007 · min(1, step / 400), then half a cosine wave to zero after step 1000"
    start = build_start(max_steps=1000, schedule=schedule)
    outlook = read_outlook(build_series(steps=build_steps(900), starts=((5.0, start),), recipe={}))
    assert outlook.plan is None
    assert not outlook.is_known
    assert outlook.most_ahead == pytest.approx(1.0, abs=0.01)


def test_an_unknown_law_is_told_by_its_rates() -> None:
    number = np.arange(1.0, 1001.0)
    rates = rate(number, warmup=50) * np.clip((1001 - number) / 200, 0.0, 1.0)
    series = build_series(
        steps=build_steps(1000, learning_rate=rates), imported=build_imported(), starts=(), recipe={}
    )
    outlook = read_outlook(series)
    shares = outlook.shares(STEPS)
    assert shares is not None
    np.testing.assert_allclose(shares[2:], np.clip((1001 - STEPS) / 200, 0.0, 1.0)[2:], atol=0.02)
    assert outlook.now < 0.01
    assert outlook.is_known


def test_without_plan_and_rates_anything_may_come() -> None:
    outlook = read_outlook(Story(sentence="mine", logs_rates=False, steps=700).series())
    assert np.isnan(outlook.now)
    assert outlook.most_ahead == 1.0
    assert outlook.sentence == ""
    assert outlook.decay(STEPS, scale=2.0).shares is None


def test_rates_that_were_not_logged_are_none() -> None:
    assert len(read_rates(build_series(steps=build_steps(learning_rate=np.nan)))) == 0
    assert len(read_rates(build_series(steps=build_steps(learning_rate=0.0)))) == 0
    assert len(read_rates(build_series(steps=build_steps(0)))) == 0


def test_a_run_that_did_nothing_has_an_outlook() -> None:
    outlook = read_outlook(build_series(steps=build_steps(0), starts=(), recipe={}))
    assert outlook.step == 0
    assert not outlook.is_warming


@pytest.mark.parametrize("logs_rates", [True, False])
def test_the_sum_of_the_rates_stands_still_at_the_end_and_goes_on_with_a_longer_plan(
    logs_rates: bool,
) -> None:
    constant = read_outlook(Story(kind="constant", logs_rates=logs_rates).series()).clock(STEPS, (1500.0,))
    cosine = read_outlook(Story(kind="cosine", logs_rates=logs_rates).series()).clock(STEPS, (1500.0,))
    assert constant is not None
    assert cosine is not None
    assert constant.shares[-1] == pytest.approx(1.5, abs=0.02)
    assert np.ptp(cosine.shares[17:20]) < 0.01
    # By a cosine of 1,500 steps the last 500 bring little, but not nothing.
    assert cosine.shares[-1] == pytest.approx(1.09, abs=0.02)


def test_no_clock_of_rates_where_none_is_known() -> None:
    story = Story(sentence="as my colleague says", logs_rates=False)
    assert read_outlook(story.series()).clock(STEPS, (1500.0,)) is None


def test_rates_of_no_known_law_go_on_as_they_are_or_as_they_were() -> None:
    for kind, share in (("constant", 1.5), ("cosine", 1.5)):
        clock = read_outlook(Story(kind=kind, sentence="as my colleague says").series()).clock(
            STEPS, (1500.0,)
        )
        assert clock is not None
        assert clock.shares[-1] == pytest.approx(share, abs=0.03)


def test_a_cool_down_does_not_end_a_warm_up() -> None:
    plan = Plan(kind="inverse_sqrt", rate=1e-3, warmup=1600, width=1, last=600, cooldown=150)
    start = build_start(max_steps=600, schedule=f"inverse_sqrt: {plan.formula}")
    steps = build_steps(600, learning_rate=plan.rates(np.arange(1.0, 601.0)))
    outlook = read_outlook(build_series(starts=((5.0, start),), steps=steps, recipe={}))
    assert outlook.warmup == 1600
    assert outlook.is_warming
