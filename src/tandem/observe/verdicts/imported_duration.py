"""How long a run of another tool took, put together from what it printed, where nothing of that has a clock."""

from dataclasses import dataclass

import numpy as np

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.finding import Evidence
from tandem.observe.numbers import count, duration
from tandem.observe.series.columns import Series
from tandem.observe.steady import steps_behind

__all__ = ["ToldTime", "last_word", "tell_time"]

SHOWN = 0.005
"""Share of the time from which what is left over is worth a word."""
TRAINED = (
    "Mean times of a step as the other tool printed them, times the steps that they stand for; what it saved between "
    "is in them."
)
BEGUN = (
    "By the tool's first mean after each start, which holds the start-up and the evaluation of the first step; "
    "building the model before that is not in it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTime:
    """A time that was added up, and of what."""

    whole_s: float
    grounds: Grounds
    answer: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What a log without a clock comes to."""

    steps: int
    untimed: int
    """Steps among them whose mean holds something else too."""
    training_s: float
    timed_evaluations: int
    evaluation_s: float
    first_s: float
    """From each start to its first line about a step, as far as the log shows it."""
    whole_s: float
    """By the times of the records; 0 where they mean nothing."""
    is_headless: bool
    """Whether the log begins in the midst of training."""

    @property
    def printed_s(self) -> float:
        """What the parts come to."""
        return self.training_s + self.evaluation_s + self.first_s


def tell_time(series: Series) -> ToldTime | None:
    """Add up what was printed; None where that has no times at all."""
    told = _add_up(series)
    if told is None:
        return None
    whole = max(told.whole_s, told.printed_s)
    lead = "" if told.whole_s > 0 and not told.is_headless else "At least "
    text = (
        f"{lead}{duration(whole)}, put together from what the tool printed, since no line about a step has a clock: "
        f"{', '.join(_told_parts(series, told, whole))}.{_restarts(series)} {last_word(series)}"
    )
    return ToldTime(
        whole_s=whole,
        # Without a clock, pauses before restarts are taken to be none.
        grounds=Grounds(kind=Kind.ASSUMED) if len(series.starts) > 1 else Grounds(lacks=("a clock",)),
        answer=text,
        evidence=_of_told(told, whole),
    )


def _add_up(series: Series) -> _Parts | None:
    behind, seconds = steps_behind(series), series.steps.duration_s
    known = np.isfinite(seconds)
    has_times = series.imported is not None and series.imported.times == "steps"
    if not (known & (behind > 0)).any() and not (has_times and series.end_s > 0):
        return None
    untimed = int(behind[~known].sum()) if known.any() else 0
    timed = [each.duration_s for each in series.evaluations if np.isfinite(each.duration_s)]
    pace = float(np.median(seconds[known])) if known.any() else 0.0
    return _Parts(
        steps=int(behind[known].sum()) + untimed,
        untimed=untimed,
        training_s=float((seconds[known] * behind[known]).sum()) + untimed * pace,
        timed_evaluations=len(timed),
        evaluation_s=float(sum(timed)),
        first_s=sum(_first_windows(series)) if has_times else 0.0,
        whole_s=series.end_s if has_times else 0.0,
        is_headless=bool(series.starts)
        and series.starts[0][1].step > 0
        and not series.starts[0][1].resumed_from,
    )


def _told_parts(series: Series, told: _Parts, whole_s: float) -> list[str]:
    parts, is_restarted = [], len(series.starts) > 1
    if told.steps:
        taken = f" ({count(told.untimed)} of them taken at the median)" if told.untimed else ""
        parts.append(f"{count(told.steps)} steps at their mean times {duration(told.training_s)}{taken}")
    if told.timed_evaluations:
        evaluations = "evaluation" if told.timed_evaluations == 1 else "evaluations"
        parts.append(f"{count(told.timed_evaluations)} {evaluations} {duration(told.evaluation_s)}")
    if told.first_s > 0:
        what = "steps before it" if told.is_headless else "start-up, and what was evaluated then"
        lines = "lines after starts" if is_restarted else "line"
        parts.append(f"up to the first {lines} ({what}) {duration(told.first_s)}")
    rest_s = whole_s - told.printed_s
    if is_restarted and rest_s > 0:
        parts.append(f"done again after a restart, or stood still before it, {duration(rest_s)}")
    elif rest_s > SHOWN * whole_s:
        parts.append(f"not told apart {duration(rest_s)}")
    return parts


def _first_windows(series: Series) -> list[float]:
    """From each start to the first line after it, where that has no time of its own."""
    times, seconds, found = series.steps.time_s, series.steps.duration_s, []
    for begun_s, _ in series.starts:
        first = int(np.searchsorted(times, begun_s, "right"))
        if first < len(times) and not np.isfinite(seconds[first]):
            found.append(float(times[first]) - begun_s)
    return found


def _restarts(series: Series) -> str:
    if len(series.starts) < 2:
        return ""
    again = ", ".join(count(start.step) for _, start in series.starts[1:])
    return (
        f" It was started {count(len(series.starts))} times, again from step {again}; a pause before that is in it "
        f"only where the log has a time of day at the start."
    )


def last_word(series: Series) -> str:
    """Whether the files say that the run ended."""
    done = f"step {count(int(series.steps.step[-1]))}" if len(series.steps) else "no step"
    if series.is_closed:
        return f"It ended ({series.ended or 'no reason is given'}); the last line is about {done}."
    return f"The files end after {done} and do not tell whether the run did."


def _of_told(told: _Parts, whole_s: float) -> tuple[Evidence, ...]:
    rows = (
        (
            "whole",
            whole_s,
            "Sum of the printed times from the first start to the last line; no clock was read.",
        ),
        ("training", told.training_s, TRAINED),
        (
            "evaluation",
            told.evaluation_s,
            "What the means around evaluations hold more than the median step.",
        ),
        ("up to the first line about a step", told.first_s, BEGUN),
    )
    return tuple(
        Evidence(name=name, value=value, unit="s", definition=definition, figure="step_times")
        for name, value, definition in rows
    )
