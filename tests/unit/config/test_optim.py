"""The optim section: each schedule gets a learning rate and a warm-up that it can use."""

from typing import Any

import pytest
from pydantic import ValidationError

from tandem.config import OptimSection


def test_the_learning_rate_is_a_peak_or_the_factor_of_schedule_transformer() -> None:
    assert OptimSection().learning_rate == 7e-4
    assert OptimSection(schedule="transformer").learning_rate == 2.0
    assert OptimSection(schedule="transformer", learning_rate=0.5).learning_rate == 0.5
    assert OptimSection(schedule="cosine", learning_rate=5e-3).learning_rate == 5e-3


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"schedule": "transformer", "learning_rate": 7e-4},
            (
                "learning_rate is 0.0007, but schedule transformer wants a factor such as 2.0; "
                "take it out, or choose another schedule"
            ),
        ),
        (
            {"learning_rate": 2},
            (
                "learning_rate is 2, but schedule inverse_sqrt wants the highest rate itself, such as 7e-4; "
                "take it out, or make the schedule transformer"
            ),
        ),
        (
            {"warmup_steps": 0},
            (
                "warmup_steps is 0, but schedule inverse_sqrt starts from where warm-up ends; "
                "make it 1 or more"
            ),
        ),
    ],
)
def test_a_value_that_the_schedule_cannot_use_is_named(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        OptimSection.model_validate(values)
    (error,) = caught.value.errors()
    assert error["msg"] == f"Value error, {sentence}"


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_other_schedules_need_no_warm_up(schedule: str) -> None:
    optim = OptimSection.model_validate({"schedule": schedule, "warmup_steps": 0})
    assert optim.warmup_steps == 0


@pytest.mark.parametrize(
    "values",
    [
        {"schedule": "step"},
        {"schedule": ["transformer"]},
        {"learning_rate": 0},
        {"warmup_steps": -1},
        {"cooldown_steps": -1},
        {"beta1": 1},
        {"beta2": -0.1},
        {"epsilon": 0},
        {"weight_decay": 2},
        {"clip_norm": -1},
        {"ema_decay": 1},
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OptimSection.model_validate(values)
