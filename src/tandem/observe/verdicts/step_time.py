"""How long is a step? Its median and spread, what is counted, and whether it changed over the run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.numbers import count, percent
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Estimate, block_means, median_with_interval, slope_of
from tandem.observe.steady import steady_steps, steps_behind
from tandem.observe.verdicts.words import seconds

__all__ = ["QUESTION", "judge"]

Numbers = NDArray[np.float64]

QUESTION = Question(
    number=10,
    key="step_time",
    question="How long is a step?",
    about="Wall time of one update of the weights: from the end of the step before to the end of the step, of rank 0, "
    "without evaluations and waiting for checkpoints.",
    would_change="More steps, measured one by one.",
    figure="step_times",
)
FEW, ENOUGH = 5, 30
"""Steps below which the answer is hardly one, and from which it is firm."""
BLOCKS = 50
DRIFTED = 0.05
"""Share of the median from which a change over the run is worth a sentence."""
OUTLIER = 2.0
"""An outlier takes this many medians or more."""
COUNTED = "Counted: all from the end of the step before to the end of the step, of rank 0."
LEFT_OUT = (
    "Not counted: evaluations, waiting for checkpoints, and the first steps after each start, which compile."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    step: Numbers
    duration_s: Numbers
    behind: NDArray[np.int64]
    left_out: int
    tokens: int
    median: Estimate

    @property
    def mean_s(self) -> float:
        return float(np.average(self.duration_s, weights=np.maximum(self.behind, 1)))

    @property
    def change(self) -> Estimate:
        """From the first step to the last, as a share of the median."""
        slope = slope_of(*block_means(self.step, self.duration_s, blocks=BLOCKS))
        whole = float(self.step[-1] - self.step[0]) / self.median.value
        return Estimate(value=slope.value * whole, low=slope.low * whole, high=slope.high * whole)

    @property
    def tenths(self) -> tuple[float, float]:
        """Medians of the first and the last tenth."""
        size = max(1, len(self.duration_s) // 10)
        return float(np.median(self.duration_s[:size])), float(np.median(self.duration_s[-size:]))


def judge(series: Series) -> Finding:
    """Answer from the durations that rank 0 logged for its steps."""
    pace = _pace(series)
    if len(pace.duration_s) == 0:
        return QUESTION.cannot_tell(
            "Cannot tell: no step has a time of its own, first steps after a start left out.",
            missing=("the duration of steps",),
        )
    is_mean = _is_mean(series)
    return QUESTION.answer(
        "measured",
        _grounds(series, pace, is_mean),
        _answer(pace, is_mean),
        evidence=_evidence(pace, is_mean),
        missing=("single steps: the log has means of many",) if is_mean else (),
        advice=_advice(pace),
    )


def _grounds(series: Series, pace: _Pace, is_mean: bool) -> Grounds:
    timed, steps = len(pace.duration_s), series.steps.step
    first = min((started.step for _, started in series.starts), default=int(steps[0]) - 1)
    made = max(int(steps[-1]) - first, 1)
    lacks = (
        (timed < ENOUGH, f"at least {ENOUGH} steps"),
        (is_mean, "single steps"),
    )
    return Grounds(
        kind=Kind.MEASURED if timed >= FEW else Kind.ASSUMED,
        coverage=1.0 if is_mean else min(1.0, (timed + pace.left_out) / made),
        lacks=tuple(name for is_lacking, name in lacks if is_lacking),
    )


def _is_mean(series: Series) -> bool:
    return series.imported is not None and series.imported.step_kind == "mean"


def _pace(series: Series) -> _Pace:
    steady, behind = steady_steps(series), steps_behind(series)
    taken = series.steps.duration_s[steady]
    return _Pace(
        step=series.steps.step[steady].astype(np.float64),
        duration_s=taken,
        median=median_with_interval(taken),
        behind=behind[steady],
        left_out=int(behind[~steady].sum()),
        tokens=int(series.steps.target_tokens[steady].sum()),
    )


def _answer(pace: _Pace, is_mean: bool) -> str:
    if len(pace.duration_s) == 1:
        steps = count(int(pace.behind[0]))
        of = f"mean over {steps} steps, the only one that the log has" if is_mean else "of a single step"
        return f"{seconds(pace.median.value)} ({of}); {_drift(pace)}."
    high, most = np.quantile(pace.duration_s, (0.95, 0.99))
    of = (
        f"{count(len(pace.duration_s))} means over {count(int(np.median(pace.behind)))} steps each"
        if is_mean
        else ""
    )
    text = (
        f"{seconds(pace.median.value)} (median of {of or count(len(pace.duration_s)) + ' steps'}; mean "
        f"{seconds(pace.mean_s)}, 95 % take at most {seconds(float(high))}, 99 % at most {seconds(float(most))})"
    )
    return f"{text}; {_drift(pace)}."


def _drift(pace: _Pace) -> str:
    if not _has_drifted(pace):
        return (
            "no drift over the run" if len(pace.duration_s) >= ENOUGH else "too few steps to speak of drift"
        )
    first, last = pace.tenths
    way = "slower" if pace.change.value > 0 else "faster"
    return (
        f"it grew {way} over the run, from {seconds(first)} in the first tenth to {seconds(last)} in the last"
    )


def _has_drifted(pace: _Pace) -> bool:
    change = pace.change
    is_real = change.low > 0 or change.high < 0
    return len(pace.duration_s) >= ENOUGH and is_real and abs(change.value) >= DRIFTED


def _advice(pace: _Pace) -> str:
    if _has_drifted(pace) and pace.change.value > 0:
        return (
            "Look at temperatures, throttling, other programs on the hosts, and the wait for data over time."
        )
    return ""


def _evidence(pace: _Pace, is_mean: bool) -> tuple[Evidence, ...]:
    taken, median = pace.duration_s, pace.median
    unit = (
        "of means over many steps, whose spread is less than that of steps" if is_mean else "of single steps"
    )
    slow = taken > OUTLIER * median.value
    first, last = pace.tenths
    found = [
        _of(
            "median", median.value, f"Half the steps take less: {unit}. {COUNTED} {LEFT_OUT}", interval=median
        ),
        _of("mean", pace.mean_s, f"Sum of durations by number of steps: {unit}."),
        _of("95th percentile", float(np.quantile(taken, 0.95)), f"95 % take at most so long: {unit}."),
        _of("99th percentile", float(np.quantile(taken, 0.99)), f"99 % take at most so long: {unit}."),
        _of("first tenth", first, "Median of the first tenth of these steps."),
        _of("last tenth", last, "Median of the last tenth of these steps."),
        Evidence(
            name="change over the run",
            value=pace.change.value,
            unit="share",
            low=pace.change.low,
            high=pace.change.high,
            definition=f"Least-squares slope of means over at most {BLOCKS} stretches, from the first of these steps "
            "to the last, by the median; the interval is widened where neighbours are alike.",
            figure="step_times",
        ),
        Evidence(
            name="outliers",
            value=float(np.mean(slow)),
            unit="share",
            definition=f"Steps that take more than {OUTLIER:g} medians; together they take "
            f"{percent(float(taken[slow].sum() / taken.sum()))} of the time of steps.",
            figure="step_times",
        ),
        Evidence(
            name="steps left out",
            value=float(pace.left_out),
            definition="The first step after each start, those right after it that take over 1.5 medians (ten at "
            "most), and steps without a time.",
        ),
    ]
    if pace.tokens:
        found.append(_of_tokens(pace))
    return tuple(found)


def _of(name: str, value: float, definition: str, *, interval: Estimate | None = None) -> Evidence:
    return Evidence(
        name=name,
        value=value,
        unit="s",
        low=interval.low if interval is not None else None,
        high=interval.high if interval is not None else None,
        definition=definition,
        figure="step_times",
    )


def _of_tokens(pace: _Pace) -> Evidence:
    return Evidence(
        name="throughput",
        value=pace.tokens / float(pace.duration_s.sum()),
        unit="tokens/s",
        definition="Target tokens of all ranks, without padding, by the time of these steps.",
        figure="throughput",
    )
