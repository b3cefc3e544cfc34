"""When a run ends: rules over numbers that every rank has alike."""

from tandem.config import TrainSection
from tandem.train.asked import Asked
from tandem.train.state import TrainState

__all__ = ["ASKED", "reason_to_stop"]

ASKED = "asked to stop"


def reason_to_stop(state: TrainState, asked: Asked, rules: TrainSection) -> str | None:
    """Why the run should end now, in words for the log, or None."""
    if asked.stop:
        return ASKED
    if state.step >= rules.max_steps:
        return f"reached {rules.max_steps:,} steps"
    if rules.max_tokens is not None and state.tokens >= rules.max_tokens:
        return f"reached {rules.max_tokens:,} target tokens"
    if asked.out_of_time:
        return f"reached {rules.max_minutes:g} minutes"
    if rules.patience is not None and state.stale >= rules.patience:
        score = "BLEU" if rules.patience_on == "bleu" else "loss"
        return f"no better {score} in {rules.patience} evaluations"
    return None
