import numpy as np
import pytest
from tests.unit.observe.verdicts.series_story import build_imported, build_recipe, build_series, build_start

from tandem.config import OptimSection
from tandem.observe.rates import planned_rates, read_plan
from tandem.train.schedule import build_schedule, describe_schedule

STEPS = np.arange(1.0, 1001.0)


@pytest.mark.parametrize("kind", ["transformer", "inverse_sqrt", "cosine", "linear", "constant"])
@pytest.mark.parametrize("cooldown", [0, 100])
@pytest.mark.parametrize("by", ["sentence", "recipe"])
def test_planned_rates_are_those_of_training(kind: str, cooldown: int, by: str) -> None:
    optim = OptimSection.model_validate({"schedule": kind, "warmup_steps": 50, "cooldown_steps": cooldown})
    sentence = describe_schedule(optim, width=256, max_steps=1000) if by == "sentence" else "as ever"
    recipe = {**build_recipe(**optim.model_dump()), "model": {"width": 256}} if by == "recipe" else {}
    series = build_series(starts=((5.0, build_start(schedule=sentence, max_steps=1000)),), recipe=recipe)
    schedule = build_schedule(optim, width=256, max_steps=1000)
    planned = planned_rates(series, STEPS)
    assert planned is not None
    np.testing.assert_allclose(planned, [schedule(int(step)) for step in STEPS], rtol=1e-5)
    plan = read_plan(series)
    assert plan is not None
    assert plan.peak_step == int(STEPS[planned.argmax()])
    assert plan.formula in describe_schedule(optim, width=256, max_steps=1000)


@pytest.mark.parametrize("kind", ["transformer", "inverse_sqrt", "cosine", "linear", "constant"])
def test_a_plan_in_numbers_needs_no_sentence(kind: str) -> None:
    numbers = {
        "schedule_kind": kind,
        "learning_rate": 1e-3,
        "warmup_steps": 50,
        "cooldown_steps": 100,
        "width": 256,
    }
    start = build_start(schedule="as ever", max_steps=1000, **numbers)
    plan = read_plan(build_series(starts=((5.0, start),), recipe={}))
    assert plan is not None
    assert (plan.kind, plan.rate, plan.warmup, plan.cooldown, plan.last) == (kind, 1e-3, 50, 100, 1000)
    assert plan.has_end


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_numbers_that_no_schedule_has_are_no_plan(rate: float) -> None:
    start = build_start(schedule="as ever", schedule_kind="cosine", learning_rate=rate)
    assert read_plan(build_series(starts=((5.0, start),), recipe={})) is None


@pytest.mark.parametrize("text", ["; the last 100 steps rise", " and a surprise", "; never above 1e-"])
def test_a_sentence_that_says_more_than_is_known_is_not_understood(text: str) -> None:
    schedule = f"inverse_sqrt: 0.0007 · min(step / 400, (400 / step)^0.5){text}"
    assert read_plan(build_series(starts=((5.0, build_start(schedule=schedule)),), recipe={})) is None


def test_a_rate_that_is_cut_off_stays_below() -> None:
    schedule = "transformer: 2 · 512^-0.5 · min(step^-0.5, step · 100^-1.5); never above 0.001"
    plan = read_plan(build_series(starts=((5.0, build_start(schedule=schedule)),), recipe={}))
    assert plan is not None
    assert plan.rates(STEPS).max() == pytest.approx(0.001)
    assert plan.formula in schedule


def test_steps_before_a_resume_follow_the_plan_that_they_had() -> None:
    text = "linear: 0.001 · min(1, step / 10), then a straight line to zero after step {}"
    starts = (
        (5.0, build_start(schedule=text.format(100), max_steps=100)),
        (60.0, build_start(schedule=text.format(1000), max_steps=1000, step=100)),
    )
    planned = planned_rates(build_series(starts=starts), STEPS)
    assert planned is not None
    assert planned[99] < 1.2e-5
    assert planned[100] > 9e-4


def test_the_policy_of_an_imported_run_is_known_by_its_numbers() -> None:
    facts = {"schedule": {"d_model": 512, "learning_rate": 2.0, "warmup_steps": 8000}}
    series = build_series(imported=build_imported(facts), recipe={}, starts=())
    plan = read_plan(series)
    assert plan is not None
    assert plan.peak_step == 8000
    assert plan.rates(np.array([8000.0]))[0] == pytest.approx(9.88e-4, rel=1e-3)


def test_without_a_formula_there_is_no_plan() -> None:
    series = build_series(recipe={}, starts=((5.0, build_start(schedule="by hand")),))
    assert read_plan(series) is None
    assert planned_rates(series, STEPS) is None
