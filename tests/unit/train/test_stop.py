import pytest

from tandem.config import TrainSection
from tandem.train.asked import Asked
from tandem.train.state import TrainState
from tandem.train.stop import reason_to_stop

RULES = TrainSection(max_steps=10, max_tokens=1000, max_minutes=5.0, patience=3, patience_on="bleu")


@pytest.mark.parametrize(
    ("state", "asked", "reason"),
    [
        (TrainState(step=10), Asked(), "reached 10 steps"),
        (TrainState(tokens=1000), Asked(), "reached 1,000 target tokens"),
        (TrainState(), Asked(out_of_time=True), "reached 5 minutes"),
        (TrainState(stale=3), Asked(), "no better BLEU in 3 evaluations"),
        (TrainState(step=10), Asked(stop=True), "asked to stop"),
    ],
)
def test_a_rule_that_is_met_ends_the_run_and_is_named(state: TrainState, asked: Asked, reason: str) -> None:
    assert reason_to_stop(state, asked, RULES) == reason


def test_a_run_goes_on_below_all_limits() -> None:
    state = TrainState(step=9, tokens=999, stale=2)
    assert reason_to_stop(state, Asked(evaluate=True, save=True), RULES) is None


def test_rules_that_are_not_given_never_end_a_run() -> None:
    state = TrainState(tokens=10**15, stale=1000)
    assert reason_to_stop(state, Asked(), TrainSection(max_steps=10)) is None
