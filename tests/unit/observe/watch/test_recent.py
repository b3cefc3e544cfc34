import math

import pytest
from tests.unit.observe.story import step_event

from tandem.observe.watch.recent import STEPS, Recent


def test_the_loss_is_a_mean_over_tokens_and_leaves_skipped_steps_out() -> None:
    recent = Recent()
    recent.add(step_event(18, loss=2.0, tokens=300))
    recent.add(step_event(19, loss=6.0, tokens=100))
    recent.add(step_event(20, loss=math.nan, skipped=True))
    assert recent.loss == 3.0
    assert recent.nll == 2.0


def test_only_the_last_steps_count() -> None:
    recent = Recent()
    for number in range(STEPS):
        recent.add(step_event(number, loss=9.0))
    for number in range(STEPS):
        recent.add(step_event(number, loss=1.0))
    assert recent.loss == 1.0


@pytest.mark.parametrize(("steps", "latest"), [(5, 1), (20, 2), (600, 60), (5_000, STEPS)])
def test_the_loss_is_of_the_last_tenth_of_the_steps_of_the_run(steps: int, latest: int) -> None:
    recent = Recent()
    for number in range(max(1, steps - STEPS + 1), steps + 1):
        recent.add(step_event(number, loss=1.0 if number > steps - latest else 9.0))
    assert recent.loss == 1.0
    recent.add(step_event(steps, loss=2.0 + latest))
    assert recent.loss > 1.0


def test_tokens_a_second_are_those_of_training_time() -> None:
    recent = Recent()
    recent.add(step_event(1, tokens=100))
    recent.add(step_event(2, tokens=300))
    assert recent.tokens_per_s == 800
    assert recent.step_s == 0.25


def test_phases_are_shares_of_the_step() -> None:
    recent = Recent()
    recent.add(step_event(1))
    assert sum(recent.phases.values()) == pytest.approx(1)
    assert recent.phases["backward"] == pytest.approx(0.48)


def test_before_the_first_step_nothing_is_known() -> None:
    recent = Recent()
    assert math.isnan(recent.loss)
    assert (recent.last, recent.step_s, recent.tokens_per_s, recent.phases) == (None, 0, 0, {})
