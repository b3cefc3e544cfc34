"""How long did the run take? Wall time, split by what was done with it, and what is left of a run that goes on."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tandem.observe.account import Account, settle
from tandem.observe.confidence import Grounds
from tandem.observe.exchange import measure_exchange
from tandem.observe.facts import fact_count
from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.numbers import count, duration, percent
from tandem.observe.series.columns import Series
from tandem.observe.spent import Spent, spend
from tandem.observe.statistics import Estimate
from tandem.observe.steady import steady_steps, steps_behind
from tandem.observe.stretches import host_count
from tandem.observe.verdicts.imported_duration import last_word, tell_time

__all__ = ["QUESTION", "judge", "judge_duration"]

QUESTION = Question(
    number=1,
    key="duration",
    question="How long did the run take?",
    about="Wall time from the run's first record to its last, split into what it was spent on: training, evaluation, "
    "checkpoints, preparation, start-up, restarts, and what nothing explains.",
    would_change="Logs that were cut off: what came after the last record is not in the answer.",
    figure="time_split",
)
HOUR_S = 3600.0
SILENT_S = 120.0
"""Silence after which a run without an end is no longer taken to be going on."""
RECENT_STEPS = 200
BLOCKS = 10
WAITS = tuple(f"training: {name}" for name in ("exchange", "slowest rank", "data", "standstill"))
NOTABLE = 0.05
"""Share of the time of training from which what it waited for is worth a word."""
SHOWN = 0.005
"""Share of the wall time from which a part is worth a word."""
CLOCK = "a clock: what came before the first start and after the last line, and pauses"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """What a run that has not ended has before it."""

    steps: int
    estimate: Estimate


def judge(series: Series) -> Finding:
    """Answer for a reader who looks now, with the price that the recipe knows."""
    return judge_duration(series, now_ns=time.time_ns(), price_per_host_hour=_maybe_price(series))


def _maybe_price(series: Series) -> float | None:
    section = series.recipe.get("telemetry")
    price = section.get("price_per_host_hour") if isinstance(section, Mapping) else None
    return float(price) if isinstance(price, int | float) else None


def judge_duration(series: Series, *, now_ns: int, price_per_host_hour: float | None = None) -> Finding:
    """Answer from the times of the log; `now_ns` tells a run that goes on from one that was killed."""
    if series.imported is not None and series.imported.times != "wall":
        return _of_imported(series)
    spent, left = spend(series), _left(series)
    account = settle(spent, measure_exchange(series) if series.imported is None else None)
    is_live = (
        series.imported is None and not series.is_closed and _silence_s(series, now_ns) <= _patience_s(series)
    )
    text = f"{duration(series.end_s)} {_span(series, is_live=is_live)}"
    text += f": {_split(account, series.end_s)}. {_state(series, left, is_live=is_live)}"
    return QUESTION.answer(
        "measured",
        _grounds(series, spent),
        text,
        evidence=(
            *_of_parts(account, series.end_s),
            *_of_hours(series, series.end_s, price_per_host_hour),
            *_of_left(left, is_live=is_live),
        ),
        missing=()
        if price_per_host_hour is not None
        else ("the price of a host for an hour (telemetry.price_per_host_hour): no cost is given",),
        advice=_advice(spent, series.end_s),
    )


def _grounds(series: Series, spent: Spent) -> Grounds:
    """The times of a log are facts, as far as it is whole and its parts explain them."""
    lacks = (
        (series.damaged > 0, "lines that could not be read"),
        (series.dropped > 0, "events that the writers could not keep"),
        (
            series.set_s > 0,
            f"one clock from start to end: it was set, or its host asleep, for {duration(series.set_s)} in between",
        ),
        (series.imported is not None, "what came before the first time in the files and after the last"),
    )
    return Grounds(
        coverage=max(0.0, 1.0 - abs(spent.rest_s) / series.end_s) if series.end_s else 1.0,
        lacks=tuple(name for is_lacking, name in lacks if is_lacking),
    )


def _span(series: Series, *, is_live: bool) -> str:
    if series.imported is not None:
        return "from the first time in the files to the last"
    return "of wall time so far" if is_live else "of wall time"


def _of_imported(series: Series) -> Finding:
    """The files have no clock: what the tool printed is put together."""
    told = tell_time(series)
    if told is None:
        text = "Cannot tell: the files have neither times nor durations of steps."
        return QUESTION.cannot_tell(text, missing=(CLOCK,))
    return QUESTION.answer(
        "measured",
        told.grounds,
        f"{told.answer}{_unfinished(series)}",
        evidence=(*told.evidence, *_of_hours(series, told.whole_s, None, what="This time")),
        missing=(CLOCK,),
    )


def _unfinished(series: Series) -> str:
    left = _left(series)
    if left is None:
        return ""
    more = duration(left.estimate.value)
    return f" {count(left.steps)} of the planned steps are not in them; they would take about {more} more."


def _split(account: Account, whole: float) -> str:
    shares = [("training", account.training_s, _within(account))]
    shares += [(item.name, item.seconds, "") for item in account.items if not item.is_training]
    shown = [
        f"{name} {percent(seconds / whole)}{more}"
        for name, seconds, more in shares
        if whole and seconds >= SHOWN * whole
    ]
    return ", ".join(shown) or "nothing was measured"


def _within(account: Account) -> str:
    """What training waited for, where that is worth a word."""
    waits = [
        f"{percent(item.seconds / account.training_s)} {item.name.removeprefix('training: ')}"
        for item in account.items
        if item.is_training and item.name in WAITS and item.seconds >= NOTABLE * account.training_s > 0
    ]
    return f" (of it {', '.join(waits)})" if waits else ""


def _state(series: Series, left: _Left | None, *, is_live: bool) -> str:
    done = f"{count(int(series.steps.step[-1]))} steps" if len(series.steps) else "no step"
    more = (
        f"; the {count(left.steps)} steps left take about {duration(left.estimate.value)}"
        if left is not None
        else ""
    )
    if series.imported is not None:
        return f"{last_word(series)}{_unfinished(series)}"
    if is_live:
        return f"It goes on, after {done}{more}."
    if series.is_closed:
        return f"It ended after {done}: {series.ended or 'no reason is logged'}."
    why = "the run was killed, or its folder copied while it went on"
    return f"The log stops after {done} without an end: {why}{more}."


def _silence_s(series: Series, now_ns: int) -> float:
    return (now_ns - series.begun_ns) / 1e9 - series.end_s - series.ahead_s


def _patience_s(series: Series) -> float:
    """How long a run may be silent: its longest evaluation or a few steps, and two minutes at least."""
    longest = [each.duration_s for each in series.evaluations if np.isfinite(each.duration_s)]
    steps = series.steps.duration_s[np.isfinite(series.steps.duration_s)]
    return max(
        [SILENT_S, *(2 * each for each in longest), 20 * float(np.median(steps)) if len(steps) else 0.0]
    )


def _left(series: Series) -> _Left | None:
    started, steps = series.started, series.steps
    steady = steady_steps(series)
    if series.is_closed or started is None or started.max_steps <= 0 or not steady.any():
        return None
    left = _steps_left(series)
    if left <= 0:
        return None
    recent = steps.duration_s[steady][-RECENT_STEPS:]
    blocks = [float(block.mean()) for block in np.array_split(recent, min(BLOCKS, len(recent)))]
    done = max(1, int(steps_behind(series).sum()))
    apart = float(
        np.nansum([each.duration_s for each in series.evaluations])
        + np.nansum([each.blocked_s for each in series.checkpoints])
    )
    low, high = np.quantile(blocks, (0.025, 0.975))
    value, low, high = (
        left * (pace + apart / done) for pace in (float(recent.mean()), float(low), float(high))
    )
    return _Left(steps=left, estimate=Estimate(value=value, low=low, high=high))


def _steps_left(series: Series) -> int:
    """By the rules for steps and tokens, whichever comes first."""
    started, steps = series.started, series.steps
    if started is None:
        return 0
    left = started.max_steps - int(steps.step[-1])
    later = steps.step > started.step
    tokens = int(steps.target_tokens[later].sum())
    if started.max_tokens and tokens:
        a_step = tokens / int(later.sum())
        left = min(left, int((started.max_tokens - started.tokens - tokens) / a_step))
    return left


def _of_parts(account: Account, whole: float) -> tuple[Evidence, ...]:
    rows = [
        ("wall time", whole, "From the first record of any log of the run to the last."),
        (
            "training",
            account.training_s,
            "Durations of the steps that stand, less what first steps take more.",
        ),
    ]
    rows += [(item.name, item.seconds, item.definition) for item in account.items if item.name != "training"]
    return tuple(
        Evidence(
            name=name,
            value=seconds,
            unit="s",
            definition=definition,
            figure="time_split" if name != "wall time" else "",
        )
        for name, seconds, definition in rows
    )


def _of_hours(
    series: Series, whole_s: float, price: float | None, *, what: str = "Wall time"
) -> tuple[Evidence, ...]:
    hosts, gpus = _machines(series)
    hours = whole_s / HOUR_S
    found = []
    if hosts:
        definition = f"{what} times {hosts} {'host' if hosts == 1 else 'hosts'}, from first to last record."
        found.append(Evidence(name="host-hours", value=hosts * hours, unit="h", definition=definition))
    if gpus:
        definition = f"{what} times {gpus} GPUs, used or not."
        found.append(Evidence(name="GPU-hours", value=gpus * hours, unit="h", definition=definition))
    if price is not None and hosts:
        definition = f"Host-hours at {price:g} each."
        found.append(Evidence(name="cost", value=hosts * hours * price, definition=definition))
    return tuple(found)


def _machines(series: Series) -> tuple[int, int]:
    """Hosts and GPUs; 0 where they are not known."""
    if series.imported is not None:
        return fact_count(series, "hosts"), fact_count(series, "gpus")
    hosts = host_count(series) if all(series.ranks.hosts) else 0
    started = series.started
    return hosts, started.ranks if started is not None and started.device != "cpu" else 0


def _of_left(left: _Left | None, *, is_live: bool) -> tuple[Evidence, ...]:
    if left is None:
        return ()
    definition = (
        f"Steps left by the rules for steps and tokens, at the mean of the last {RECENT_STEPS} steps and with "
        "evaluations and checkpoints as often as so far; patience may end it earlier."
    )
    estimate = left.estimate
    return (
        Evidence(
            name="time left" if is_live else "time that was left",
            value=estimate.value,
            unit="s",
            low=estimate.low,
            high=estimate.high,
            definition=definition,
        ),
    )


def _advice(spent: Spent, whole: float) -> str:
    if spent.evaluation_s > 0.2 * whole:
        return "Evaluations take over a fifth of the time: evaluate more rarely, or on fewer sentences."
    if spent.lost_s > 0.1 * whole:
        return "Restarts cost over a tenth of the time: see why workers are lost, and write checkpoints more often."
    return ""
