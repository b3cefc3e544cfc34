"""Where the wall time of a run went: training and all that is not."""

from dataclasses import dataclass

import numpy as np

from tandem.observe.series.columns import Series
from tandem.observe.steady import steady_steps, steps_behind
from tandem.runlog.event import Event, RunFinished, RunStarted, StageFinished, TrainingFinished, WorkersLost

__all__ = ["Spent", "pauses", "spend"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of a run; together they are its wall time, unless logs disagree."""

    training_s: float
    """Steps that stand, at their pace."""
    evaluation_s: float
    checkpoint_s: float
    """While training waited for them."""
    preparation_s: float
    """Of data."""
    start_s: float
    """From the first record to the first step, and what first steps take more than others."""
    lost_s: float
    """To restarts: steps that were done again, and from a loss to the next start."""
    stopped_s: float
    """Between an end and a later resume, while nothing ran."""
    rest_s: float
    """Not explained by any of these."""

    @property
    def whole_s(self) -> float:
        """Wall time from the first record to the last."""
        return (
            self.training_s
            + self.evaluation_s
            + self.checkpoint_s
            + self.preparation_s
            + self.start_s
            + self.lost_s
            + self.stopped_s
            + self.rest_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Break:
    """What lies between the work before a restart and the restart."""

    start_s: float = 0.0
    lost_s: float = 0.0
    stopped_s: float = 0.0
    is_told: bool = True
    """Whether the log says how the work before ended."""


def spend(series: Series) -> Spent:
    """Split the wall time; what evaluations or checkpoints of redone steps took is lost time."""
    durations, steady, behind = series.steps.duration_s, steady_steps(series), steps_behind(series)
    pace = float(np.median(durations[steady])) if steady.any() else 0.0
    # Imported points that stand for many steps have no time where an evaluation lies among these.
    durations = np.nan_to_num(
        durations, nan=pace if series.imported is not None else 0.0, posinf=0.0, neginf=0.0
    )
    excess = float((np.maximum(0.0, durations - pace) * behind)[~steady].sum()) if steady.any() else 0.0
    training = float((durations * behind).sum()) - excess
    evaluation = float(np.nansum([each.duration_s for each in series.evaluations]))
    checkpoint = float(np.nansum([each.blocked_s for each in series.checkpoints]))
    stages = [mark.event for mark in series.marks if isinstance(mark.event, StageFinished)]
    preparation = sum(stage.duration_s for stage in stages if not stage.reused)
    first = _first_work_s(series)
    breaks = [_break(series, number) for number in range(1, len(series.starts))]
    stopped = sum(each.stopped_s for each in breaks)
    # A run that was killed and resumed did its last steps in vain before the pause.
    redone = min(series.redone_s, sum(each.stopped_s for each in breaks if not each.is_told))
    parts = {
        "training_s": training,
        "evaluation_s": evaluation,
        "checkpoint_s": checkpoint,
        "preparation_s": min(preparation, first),
        "start_s": max(0.0, first - preparation) + excess + sum(each.start_s for each in breaks),
        "lost_s": sum(each.lost_s for each in breaks) + redone,
        "stopped_s": stopped - redone,
    }
    return Spent(**parts, rest_s=series.end_s - sum(parts.values()))


def _first_work_s(series: Series) -> float:
    """When training began; where the log of its start is lost, with the first step that there is."""
    if series.starts:
        return series.starts[0][0]
    if not len(series.steps):
        return series.end_s
    duration_s = float(series.steps.duration_s[0])
    return max(0.0, float(series.steps.time_s[0]) - (duration_s if np.isfinite(duration_s) else 0.0))


def pauses(series: Series) -> list[tuple[float, float]]:
    """When training went on after each restart, and how many seconds before it nothing ran."""
    return [
        (series.starts[number][0], _break(series, number).stopped_s)
        for number in range(1, len(series.starts))
    ]


def _break(series: Series, number: int) -> _Break:
    until = series.starts[number][0]
    # Where nothing stands of what was done since the start before, all since then was in vain.
    since = max(_last_work(series, until), series.starts[number - 1][0])
    marks = [(mark.time_s, mark.event) for mark in series.marks if since < mark.time_s < until]
    ended = _last(marks, TrainingFinished, RunFinished)
    if ended is not None:
        began = _first([mark for mark in marks if mark[0] > ended], RunStarted)
        back = until if began is None else began
        return _Break(stopped_s=back - ended, start_s=until - back)
    if _first(marks, WorkersLost) is not None:
        return _Break(lost_s=until - since)
    began = _first(marks, RunStarted)
    if began is None:
        return _Break(lost_s=until - since)
    return _Break(stopped_s=began - since, lost_s=until - began, is_told=False)


def _last_work(series: Series, until: float) -> float:
    """When the last work was done before a start that was not done again."""
    times = series.steps.time_s
    before = int(np.searchsorted(times, until))
    ends = [float(times[before - 1])] if before else [0.0]
    ends += [each.time_s for each in series.evaluations if each.time_s < until]
    ends += [each.time_s for each in series.checkpoints if each.time_s < until]
    return max(ends)


def _first(marks: list[tuple[float, Event]], *kinds: type[Event]) -> float | None:
    return next((time for time, event in marks if isinstance(event, kinds)), None)


def _last(marks: list[tuple[float, Event]], *kinds: type[Event]) -> float | None:
    return _first(marks[::-1], *kinds)
