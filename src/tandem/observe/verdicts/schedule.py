"""What is the learning-rate schedule? The formula with its numbers, its peak, and the rates as they were run."""

import numpy as np
from numpy.typing import NDArray

from tandem.observe.confidence import Grounds, Kind
from tandem.observe.finding import Evidence, Finding, Question
from tandem.observe.numbers import count, percent
from tandem.observe.outlook import Rates, read_rates
from tandem.observe.rates import Plan, planned_rates, read_plan
from tandem.observe.series.columns import Series
from tandem.observe.steady import unlogged_steps

__all__ = ["QUESTION", "judge"]

Numbers = NDArray[np.float64]

QUESTION = Question(
    number=6,
    key="schedule",
    question="What is the learning-rate schedule?",
    about="The formula that gives each step its learning rate, with its numbers, and whether the steps used "
    "what it says.",
    would_change="Learning rates of steps that do not lie on the formula.",
    figure="learning_rate",
)
FORMULA, RATES = "the formula of the learning rate", "the learning rate as run"
HIGHEST = "the learning rate of the steps where it was highest"
SAME = 0.01
"""Largest relative difference at which rates count as planned."""
OFFSET_STEPS = 2.0
"""Tools differ in whether the first step is 0 or 1; a run may be off by so many steps."""
SMALL = 1e-3
"""Share of the peak below which a rate is too small to compare."""
FITTED = 0.02

RISES = "rises so that the first, unsure gradients cannot throw the model off"
FALLS = "falls so that it can settle"
ALONE = "it follows the step alone, so it neither causes BLEU nor follows it"


def judge(series: Series) -> Finding:
    """Answer from the plan and from the rates that steps logged."""
    plan, run = read_plan(series), read_rates(series)
    if plan is None and len(run.rate) == 0:
        return QUESTION.cannot_tell(
            "Cannot tell: neither a formula nor the learning rate of any step is in the log.",
            missing=(FORMULA, RATES),
        )
    if plan is None:
        return _of_run_alone(series, run)
    apart, unseen = _differences(series, plan, run), _is_top_unseen(series, plan, run)
    differs = float(apart.max()) if apart is not None else None
    text = f"{plan.kind}: {plan.formula}; highest {_peak(plan):.3g} at step {count(plan.peak_step)}"
    if differs is None:
        text += "; the rates as run were not logged"
    elif differs <= SAME:
        text += "; the rates as run follow it"
    else:
        text += f"; the rates as run differ from it by up to {percent(differs)}"
    return QUESTION.answer(
        "measured",
        _grounds(series, apart, is_top_unseen=unseen),
        f"{text}.{_still_to_come(series, plan)} {_why(plan)}",
        evidence=_evidence(plan, run, differs, is_top_unseen=unseen),
        missing=(RATES,) if differs is None else (HIGHEST,) if unseen else (),
        advice="Look whether the recipe was changed between starts."
        if differs is not None and differs > SAME
        else "",
    )


def _grounds(series: Series, apart: Numbers | None, *, is_top_unseen: bool) -> Grounds:
    """A formula is what was ordered; it speaks for the run as far as the rates as run lie on it."""
    if apart is None:
        return Grounds(kind=Kind.NOMINAL)
    lacks = ((apart.max() > SAME, "why the rates left the formula"), (is_top_unseen, HIGHEST))
    return Grounds(
        coverage=_logged(series, len(apart)) * float(np.mean(apart <= SAME)),
        lacks=tuple(name for is_lacking, name in lacks if is_lacking),
    )


def _logged(series: Series, rates: int) -> float:
    """The share of the steps that logged their rate, of all that were made: some may have left no line."""
    return min(1.0, rates / max(1, len(series.steps) + unlogged_steps(series)))


def _is_top_unseen(series: Series, plan: Plan, run: Rates) -> bool:
    """Whether a step that logged no rate had a higher one than all that did, by the plan as the others followed it."""
    if not len(run):
        return False
    begun = min((start.step for _, start in series.starts), default=0)
    ended = series.finished.step if series.finished is not None else 0
    edges = np.concatenate([[min(begun, run.step[0] - 1)], run.step, [max(ended, run.step[-1]) + 1]])
    holed = np.flatnonzero(np.diff(edges) > 1)
    places = np.unique([*(edges[holed] + 1), *(edges[holed + 1] - 1), *_top_between(plan, edges)])
    planned, unseen = planned_rates(series, run.step), planned_rates(series, places)
    if planned is None or unseen is None or not len(places):
        return False
    large = planned > SMALL * planned.max()
    as_run = np.interp(places, run.step[large], run.rate[large] / planned[large]) if large.any() else 1.0
    return bool((unseen * as_run).max() > float(run.rate.max()) * (1 + SAME))


def _top_between(plan: Plan, edges: Numbers) -> list[float]:
    """The step of the peak, where it was made and logged no rate."""
    is_made = edges[0] < plan.peak_step < edges[-1]
    return [float(plan.peak_step)] if is_made and plan.peak_step not in edges else []


def _still_to_come(series: Series, plan: Plan) -> str:
    """What of the plan the run has not reached; nothing where its last step was made."""
    step = int(series.steps.step[-1]) if len(series.steps) else 0
    if not plan.has_end or plan.last <= step:
        return ""
    return f" The run has come to step {count(step)} of {count(plan.last)}: the end of that fall is still to come."


def _peak(plan: Plan) -> float:
    return float(plan.rates(np.array([float(plan.peak_step)]))[0])


def _why(plan: Plan) -> str:
    is_rising, is_falling = plan.warmup > 1, plan.kind != "constant" or plan.cooldown > 0
    parts = [RISES] * is_rising + [FALLS if is_falling else "then stays" if is_rising else "stays the same"]
    return f"It {', and '.join(parts)}; {ALONE}."


def _differences(series: Series, plan: Plan, run: Rates) -> Numbers | None:
    """Relative differences between planned and run; None where nothing can be compared."""
    planned = planned_rates(series, run.step)
    if planned is None or len(run.rate) == 0:
        return None
    large = planned > SMALL * _peak(plan)
    if not large.any():
        return None
    slack = np.zeros_like(planned)
    if series.imported is not None:
        slack = OFFSET_STEPS / np.maximum(run.step, 1.0) * planned
    apart = np.maximum(0.0, np.abs(run.rate - planned) - slack)
    return np.asarray(np.where(large, apart / np.maximum(planned, 1e-30), 0.0))


def _of_run_alone(series: Series, run: Rates) -> Finding:
    place = int(run.rate.argmax())
    top = f"{run.rate[place]:.3g} at step {count(int(run.step[place]))}"
    plan = _fitted(run)
    grounds = Grounds(coverage=_logged(series, len(run)), lacks=(FORMULA,))
    if plan is None:
        text = f"No formula is in the log, and the rates fit none that is known; the highest is {top}."
        return QUESTION.answer("measured", grounds, text, missing=(FORMULA,), evidence=_peak_run(run))
    text = f"The rates as run look like {plan.kind}: {plan.formula}; the highest is {top}. {_why(plan)}"
    return QUESTION.answer("measured", grounds, text, missing=(FORMULA,), evidence=_peak_run(run))


def _fitted(run: Rates) -> Plan | None:
    """The known shape that goes through the rates, if one does."""
    place = int(run.rate.argmax())
    warmup, rate = int(run.step[place]), float(run.rate[place])
    is_flat = run.rate.min() > rate * (1 - FITTED)
    last = int(run.step[-1])
    plans = [
        Plan(kind="constant", rate=rate, warmup=0 if is_flat else warmup, width=1, last=last, cooldown=0)
    ]
    if not is_flat and place < len(run.rate) - 1:
        plans += [
            Plan(kind=kind, rate=rate, warmup=warmup, width=1, last=end, cooldown=0)
            for kind, end in (("inverse_sqrt", last), ("linear", _zero_of(run, place)), ("cosine", last))
        ]
    for plan in plans:
        planned = plan.rates(run.step)
        large = planned > 0.05 * rate
        if len(run.rate) >= 5 and (np.abs(run.rate - planned)[large] <= FITTED * rate).all():
            return plan
    return None


def _zero_of(run: Rates, place: int) -> int:
    """Where a straight line through the rates after their peak comes to zero."""
    slope = (run.rate[-1] - run.rate[place]) / (run.step[-1] - run.step[place])
    return int(run.step[-1] - run.rate[-1] / slope) if slope < 0 else int(run.step[-1])


def _peak_run(run: Rates, *, is_top_unseen: bool = False) -> tuple[Evidence, ...]:
    if len(run.rate) == 0:
        return ()
    place = int(run.rate.argmax())
    higher = " Steps whose rate is not in the log had a higher one, by the plan." if is_top_unseen else ""
    return (
        Evidence(
            name="highest rate that was logged" if is_top_unseen else "highest rate as run",
            value=float(run.rate[place]),
            definition=f"Of the steps that logged one; it was at step {count(int(run.step[place]))}.{higher}",
            figure="learning_rate",
        ),
        Evidence(
            name="last rate as run",
            value=float(run.rate[-1]),
            definition=f"At step {count(int(run.step[-1]))}.",
            figure="learning_rate",
        ),
    )


def _evidence(plan: Plan, run: Rates, differs: float | None, *, is_top_unseen: bool) -> tuple[Evidence, ...]:
    found = [
        Evidence(
            name="formula",
            value=plan.formula,
            definition="As planned at the last start of training; step counts from 1.",
            figure="learning_rate",
        ),
        Evidence(
            name="highest rate planned",
            value=_peak(plan),
            definition=f"By the formula, at step {count(plan.peak_step)}.",
            figure="learning_rate",
        ),
        *_peak_run(run, is_top_unseen=is_top_unseen),
    ]
    if differs is not None:
        found.append(
            Evidence(
                name="largest difference from the plan",
                value=differs,
                unit="share",
                definition="Over all steps that logged a rate: |run − planned| / planned, where the plan is above a "
                "thousandth of its peak; a run of another tool may count its steps two off.",
                figure="learning_rate",
            )
        )
    return tuple(found)
