"""How fast runs trained: target tokens a second and the time of a step, with intervals that know of like neighbours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tandem.observe.compare.comparable import token_objection
from tandem.observe.compare.judgement import Judgement, Outcome, Question, Value, judge, stretch
from tandem.observe.numbers import count, percent
from tandem.observe.series.columns import Series
from tandem.observe.statistics import Estimate, ratio_by_blocks
from tandem.observe.steady import steady_steps

__all__ = ["judge_speed"]

Numbers = NDArray[np.float64]

BLOCKS = 20
FEWEST_STEPS = 40
"""Steps below which blocks would be too short to say anything."""
ALIKE = 0.02
"""Share by which the speed of one recipe on one machine easily differs from one day to the next."""
TOKENS = Question(key="tokens_per_s", title="Target tokens a second", unit="tokens/s")
STEP = Question(key="step_s", title="Time of a step", unit="s", is_lower_better=True)


def judge_speed(named: Mapping[str, Series]) -> Iterator[Judgement]:
    """Tokens a second, then the time of a step; evaluations and checkpoints are in neither."""
    rates = [_value(name, _tokens(series)) for name, series in named.items()]
    yield judge(TOKENS, rates, _teller(named, token_objection))
    times = [_value(name, _step(series)) for name, series in named.items()]
    yield judge(STEP, times, _teller(named, _other_steps))


def _teller(
    named: Mapping[str, Series], objection: Callable[[Series, Series], str]
) -> Callable[[Value, Value, float], Outcome]:
    def tell(one: Value, other: Value, chance: float) -> Outcome:
        if told := objection(named[one.run], named[other.run]):
            return Outcome(is_told=None, why=told)
        outcome = _told_apart(one, other, chance)
        return replace(outcome, why=outcome.why + _other_machines(named, one, other))

    return tell


def _told_apart(one: Value, other: Value, chance: float) -> Outcome:
    if not (np.isfinite(one.half) and np.isfinite(other.half)):
        return Outcome(is_told=None, why=f"There are fewer than {FEWEST_STEPS} steps at a steady pace.")
    reach = max(sqrt(one.half**2 + other.half**2) * stretch(chance), ALIKE * max(one.value, other.value))
    why = (
        f"Intervals are of means over {BLOCKS} stretches of each run; under {percent(ALIKE)} nothing is told apart, "
        "since a machine's own pace varies by that."
    )
    return Outcome(is_told=abs(one.value - other.value) > reach, why=why)


def _other_machines(named: Mapping[str, Series], one: Value, other: Value) -> str:
    devices = [_machines(named[value.run]) for value in (one, other)]
    return " Their machines or ranks differ, so this is not of the recipe alone." * (devices[0] != devices[1])


def _machines(series: Series) -> tuple[object, ...]:
    started = series.started
    gpus = sorted(name for each in series.samples.values() for name in each.described.gpus)
    hosts = sorted({each.host for each in series.processes})
    return (started.ranks if started else 0, started.device if started else "", gpus, hosts)


def _other_steps(one: Series, other: Series) -> str:
    """Why a step of one is not a step of the other."""
    if told := token_objection(one, other):
        return told
    sizes = [float(np.median(series.steps.target_tokens)) for series in (one, other)]
    if abs(sizes[0] - sizes[1]) <= ALIKE * max(sizes):
        return ""
    return f"A step is not the same work in both: {count(round(sizes[0]))} and {count(round(sizes[1]))} target tokens."


def _value(name: str, found: Estimate | None) -> Value:
    if found is None:
        return Value(run=name, value=np.nan)
    return Value(run=name, value=found.value, low=found.low, high=found.high)


def _tokens(series: Series) -> Estimate | None:
    steps = series.steps
    steady = steady_steps(series) & (steps.target_tokens > 0) & (steps.duration_s > 0)
    return _estimate(steps.target_tokens[steady].astype(np.float64), steps.duration_s[steady])


def _step(series: Series) -> Estimate | None:
    durations = series.steps.duration_s[steady_steps(series)]
    return _estimate(durations, np.ones(len(durations)))


def _estimate(above: Numbers, below: Numbers) -> Estimate | None:
    if len(above) == 0:
        return None
    if len(above) < FEWEST_STEPS:
        return Estimate(value=float(above.sum() / below.sum()), low=np.nan, high=np.nan)
    return ratio_by_blocks(above, below, blocks=BLOCKS)
