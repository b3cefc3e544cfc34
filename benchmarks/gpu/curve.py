"""What a run learnt in how many seconds of training, from its log: validation and start-up are not counted."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.runlog.event import (
    EvaluationFinished,
    EvaluationStarted,
    LossMeasured,
    StepFinished,
    TrainingStarted,
)
from tandem.runlog.reader import read_records
from tandem.train.validate import VALID

__all__ = ["Curve", "Point", "at_marks", "first_below", "read_curve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One evaluation."""

    step: int
    trained_s: float
    """Seconds on the wall since the first step began, evaluations left out, checkpoints not."""
    nll: float
    """Of the whole valid set in nats, end marks included, without smoothing or dropout."""
    target_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A run's evaluations in order, and its speed."""

    points: tuple[Point, ...]
    steps: int
    target_tokens: int
    trained_s: float
    """All seconds of training."""
    steps_s: float
    """The same by the run's own clock, which leaves checkpoints out too."""
    evaluated_s: float
    start_up_s: float
    """From the moment when all was built until the first step had begun, in which kernels are made ready."""


def read_curve(run: Path) -> Curve:
    """Read a finished run that began anew."""
    records = [record for record in read_records(run) if record.rank == 0]
    steps = [(record.clock_s, record.event) for record in records if isinstance(record.event, StepFinished)]
    usual_s = statistics.median(step.duration_s for _, step in steps)
    # The host may be a step or two ahead of what it logs, which is less than a tenth of a second.
    begun_s = steps[0][0] - usual_s
    built_s = next(record.clock_s for record in records if isinstance(record.event, TrainingStarted))
    points: list[Point] = []
    paused_s = paused_at = 0.0
    for record in records:
        event = record.event
        if isinstance(event, EvaluationStarted):
            paused_at = record.clock_s
        elif isinstance(event, LossMeasured) and event.set == VALID:
            points.append(
                Point(
                    step=event.step,
                    trained_s=paused_at - begun_s - paused_s,
                    nll=event.loss * event.target_tokens,
                    target_tokens=event.target_tokens,
                )
            )
        elif isinstance(event, EvaluationFinished):
            paused_s += record.clock_s - paused_at
    return Curve(
        points=tuple(points),
        steps=steps[-1][1].step,
        target_tokens=sum(step.target_tokens for _, step in steps),
        trained_s=points[-1].trained_s,
        steps_s=sum(step.duration_s for _, step in steps) - (steps[0][1].duration_s - usual_s),
        evaluated_s=paused_s,
        start_up_s=begun_s - built_s,
    )


def at_marks(points: Sequence[Point], marks_s: Sequence[float]) -> dict[float, Point]:
    """Return, for each mark that was reached, the last evaluation at or before it."""
    found = {}
    for mark in marks_s:
        before = [point for point in points if point.trained_s <= mark]
        if before:
            found[mark] = before[-1]
    return found


def first_below(points: Sequence[Point], *, nll: float) -> Point | None:
    """Return the first evaluation at which the loss was as low as this."""
    return next((point for point in points if point.nll <= nll), None)
