"""The last steps of a run, and what they say about its pace."""

import math
from collections import deque

from tandem.observe.numbers import share
from tandem.runlog.event import StepFinished

__all__ = ["Recent"]

STEPS = 100


class Recent:
    """A window over the last steps."""

    def __init__(self) -> None:
        self._steps: deque[StepFinished] = deque(maxlen=STEPS)

    def add(self, step: StepFinished) -> None:
        """Take the next step."""
        self._steps.append(step)

    def clear(self) -> None:
        """Forget: the steps to come do not follow the ones before."""
        self._steps.clear()

    @property
    def last(self) -> StepFinished | None:
        """The newest step."""
        return self._steps[-1] if self._steps else None

    @property
    def loss(self) -> float:
        """What is minimised, per target token; NaN before the first step that counts."""
        return self._per_token([step.loss for step in self._steps])

    @property
    def nll(self) -> float:
        """Negative log-likelihood per target token; NaN before the first step that counts."""
        return self._per_token([step.nll for step in self._steps])

    @property
    def step_s(self) -> float:
        """Seconds a step."""
        return share(sum(step.duration_s for step in self._steps), len(self._steps))

    @property
    def tokens_per_s(self) -> float:
        """Real target tokens of all ranks a second, while training."""
        duration_s = sum(step.duration_s for step in self._steps)
        return share(sum(step.target_tokens for step in self._steps), duration_s)

    @property
    def phases(self) -> dict[str, float]:
        """Share of the time in each phase."""
        totals: dict[str, float] = {}
        for step in self._steps:
            for name, seconds in step.phases.items():
                totals[name] = totals.get(name, 0.0) + seconds
        whole = sum(totals.values())
        return {name: share(seconds, whole) for name, seconds in totals.items()}

    def _per_token(self, values: list[float]) -> float:
        pairs = zip(self._steps, values, strict=True)
        counted = [(step.target_tokens, value) for step, value in pairs if not step.skipped]
        tokens = sum(count for count, _ in counted)
        return sum(count * value for count, value in counted) / tokens if tokens else math.nan
