"""The last steps of a run, and what they say about its pace."""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tandem.observe.numbers import share
from tandem.runlog.event import StepFinished

__all__ = ["STEPS", "Recent", "RecentStep"]

STEPS = 100
LATEST = 10
"""One part of so many of a run's steps, its last one, is what a mean loss is of: more would lag behind the curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentStep:
    """What the columns of a series tell of a step, with the names of StepFinished."""

    step: int
    loss: float
    nll: float
    learning_rate: float
    gradient_norm: float
    skipped: bool
    target_tokens: int
    duration_s: float
    phases: Mapping[str, float]


class Recent:
    """A window over the last steps."""

    def __init__(self) -> None:
        self._steps: deque[StepFinished | RecentStep] = deque(maxlen=STEPS)

    def add(self, step: StepFinished | RecentStep) -> None:
        """Take the next step."""
        self._steps.append(step)

    def clear(self) -> None:
        """Forget: the steps to come do not follow the ones before."""
        self._steps.clear()

    def __iter__(self) -> Iterator[StepFinished | RecentStep]:
        return iter(self._steps)

    def __len__(self) -> int:
        """Steps since the start, as far as they are held."""
        return len(self._steps)

    @property
    def last(self) -> StepFinished | RecentStep | None:
        """The newest step."""
        return self._steps[-1] if self._steps else None

    @property
    def loss(self) -> float:
        """What is minimised, per target token, over the last tenth of the steps; NaN before one counts."""
        return self._per_token([step.loss for step in self._steps])

    @property
    def nll(self) -> float:
        """Negative log-likelihood per target token, over the same steps; NaN before one counts."""
        return self._per_token([step.nll for step in self._steps])

    @property
    def step_s(self) -> float:
        """Seconds a step."""
        timed = [step.duration_s for step in self._timed]
        return share(sum(timed), len(timed))

    @property
    def tokens_per_s(self) -> float:
        """Real target tokens of all ranks a second, while training."""
        duration_s = sum(step.duration_s for step in self._timed)
        return share(sum(step.target_tokens for step in self._timed), duration_s)

    @property
    def paces(self) -> list[float]:
        """Target tokens a second of each step, the newest last."""
        return [share(step.target_tokens, step.duration_s) for step in self._timed]

    @property
    def phases(self) -> dict[str, float]:
        """Share of the time that rank 0 spent in each phase; `exchange` is all that it waited for, slower ranks too."""
        totals: dict[str, float] = {}
        for step in self._steps:
            for name, seconds in step.phases.items():
                # Nothing else is a part of a whole, or can be drawn as one.
                if 0 <= seconds < math.inf:
                    totals[name] = totals.get(name, 0.0) + seconds
        whole = sum(totals.values())
        return {name: share(seconds, whole) for name, seconds in totals.items()}

    @property
    def _timed(self) -> list[StepFinished | RecentStep]:
        """Imported steps may have no time."""
        return [step for step in self._steps if math.isfinite(step.duration_s)]

    def _per_token(self, values: list[float]) -> float:
        pairs = zip(self._steps, values, strict=True)
        latest = max(1, self._steps[-1].step // LATEST) if self._steps else 0
        # Steps of other tools may have no count of tokens.
        counted = [(step.target_tokens or 1, value) for step, value in pairs if not step.skipped][-latest:]
        tokens = sum(count for count, _ in counted)
        return sum(count * value for count, value in counted) / tokens if tokens else math.nan
