"""Steps gathered into windows, so that the curves of a long run stay small."""

import math
from collections.abc import Iterable, Sequence

from tandem.runlog.event import StepFinished

__all__ = ["StepWindow"]

EVERY_STEP_UNTIL = 1_000
WIDTH = 10


class StepWindow:
    """Gathers steps: one at a time up to step 1,000, ten at a time after it."""

    def __init__(self) -> None:
        self._steps: list[StepFinished] = []

    def add(self, step: StepFinished) -> bool:
        """Take the next step; tells whether the window is full."""
        self._steps.append(step)
        return step.step <= EVERY_STEP_UNTIL or step.step % WIDTH == 0

    def take(self) -> tuple[int, dict[str, float]] | None:
        """The last step and the curves' values, means over the window; empties it. None when it was empty."""
        steps, self._steps = self._steps, []
        return (steps[-1].step, _scalars(steps)) if steps else None


def _scalars(steps: Sequence[StepFinished]) -> dict[str, float]:
    made = [step for step in steps if not step.skipped]
    tokens = sum(step.target_tokens for step in made)
    duration_s = sum(step.duration_s for step in steps)
    scalars = {
        "learning_rate": steps[-1].learning_rate,
        "loss_scale": steps[-1].loss_scale,
        **{f"phase/{name}": _mean(step.phases.get(name, 0.0) for step in steps) for name in steps[-1].phases},
    }
    if tokens:
        scalars["train_loss"] = sum(step.loss * step.target_tokens for step in made) / tokens
        scalars["train_nll"] = sum(step.nll * step.target_tokens for step in made) / tokens
        scalars["global_gradient_norm"] = _mean(step.gradient_norm for step in made)
    if duration_s > 0:
        scalars["steps_per_second"] = len(steps) / duration_s
        scalars["target_tokens_per_second"] = sum(step.target_tokens for step in steps) / duration_s
    return scalars


def _mean(values: Iterable[float]) -> float:
    held = list(values)
    return math.fsum(held) / len(held)
