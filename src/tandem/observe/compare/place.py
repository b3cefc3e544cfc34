"""Where in its training a run had which value: after how many steps, target tokens or hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tandem.observe.series.columns import Evaluation, Series
from tandem.observe.spent import pauses
from tandem.observe.steady import steps_behind

__all__ = ["AGAINST", "Against", "evaluation_places", "step_places"]

Numbers = NDArray[np.float64]
Against = Literal["steps", "tokens", "time"]
AGAINST: tuple[Against, ...] = get_args(Against)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hours:
    """Training time at any moment of the run: waits and restarts count, pauses in which nothing ran do not."""

    begun_s: float
    went_on_s: Numbers
    paused_s: Numbers
    """All pauses up to each of those moments."""

    def at(self, time_s: Numbers) -> Numbers:
        before = np.concatenate(([0.0], self.paused_s))[np.searchsorted(self.went_on_s, time_s, "right")]
        return np.maximum(0.0, time_s - self.begun_s - before)


def step_places(series: Series, against: Against) -> Numbers | None:
    """Of each step; None where the log does not tell."""
    steps = series.steps
    if len(steps) == 0:
        return None
    if against == "steps":
        return steps.step.astype(np.float64)
    if against == "tokens":
        return _tokens(series)
    hours = _hours(series)
    return None if hours is None else hours.at(steps.time_s)


def evaluation_places(series: Series, evaluations: Sequence[Evaluation], against: Against) -> Numbers | None:
    """Of each evaluation; None where the log does not tell. Times are in seconds."""
    at = np.array([each.step for each in evaluations], np.float64)
    if against == "steps":
        return at
    if against == "time":
        hours = _hours(series)
        return None if hours is None else hours.at(np.array([each.time_s for each in evaluations]))
    tokens = _tokens(series)
    if tokens is None:
        return None
    before = (0.0, float(series.starts[0][1].tokens)) if series.starts else (0.0, 0.0)
    steps = np.concatenate((before[:1], series.steps.step.astype(np.float64)))
    return np.interp(at, steps, np.concatenate((before[1:], tokens)))


def _tokens(series: Series) -> Numbers | None:
    trained = series.steps.target_tokens.astype(np.float64) * steps_behind(series)
    if len(trained) == 0 or not (trained > 0).any():
        return None
    before = float(series.starts[0][1].tokens) if series.starts else 0.0
    return before + np.cumsum(np.maximum(trained, 0.0))


def _hours(series: Series) -> _Hours | None:
    if series.imported is not None and series.imported.times == "none":
        return None
    stopped = pauses(series)
    return _Hours(
        begun_s=series.starts[0][0] if series.starts else 0.0,
        went_on_s=np.array([time_s for time_s, _ in stopped]),
        paused_s=np.cumsum([seconds for _, seconds in stopped], dtype=np.float64),
    )
