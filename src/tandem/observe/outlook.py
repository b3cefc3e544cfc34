"""What a run's learning rate is still to do: what its curves can say nothing about, because it was not seen yet."""

from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from tandem.observe.curve_fits import Decay
from tandem.observe.curve_shapes import Clock
from tandem.observe.numbers import count, percent
from tandem.observe.rates import Plan, planned_rates, read_plan
from tandem.observe.series.columns import Series

__all__ = ["Outlook", "Rates", "read_outlook", "read_rates"]

Numbers = NDArray[np.float64]

FOLLOWED = 0.05
"""Relative difference, of most of the last rates, up to which a run follows its plan."""
FEWEST_ON_IT = 0.3
"""Part of the rates after the peak that has to lie on a law for it to be that of the run."""
LATE = 0.2
"""Part of the logged rates that shows whether it does."""
LITTLE, NEXT_TO_NOTHING = 0.1, 0.02
"""Shares of the undecayed rate: a fall by less than the first is none, and a rate below the second has none left."""

POINTS = 500
"""Places at which a planned rate is looked at to sum it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Learning rates as they were run, where they were logged."""

    step: Numbers
    rate: Numbers

    def __len__(self) -> int:
        return len(self.step)

    def sums(self, step: Numbers) -> Numbers:
        """Of the rates up to each of these steps; one that was logged stands for the steps since the one before."""
        sums = np.cumsum(self.rate * np.diff(self.step, prepend=0.0))
        return np.asarray(np.interp(step, np.append(0.0, self.step), np.append(0.0, sums)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Where the learning rate is in its plan after the last step.

    Shares are of the undecayed rate: what the formula would give without its fall to zero at the end, or the highest
    rate so far where no formula is known.
    """

    plan: Plan | None
    """The formula that the run followed so far; None where there is none, or the rates as run left it."""
    step: int
    """The last one that was made."""
    now: float
    """Share at that step; nan where neither plan nor rates are known."""
    end: float
    """Share at the end of the plan."""
    last: int
    """The last step that was planned; 0 where that is not known."""
    series: Series

    @property
    def ahead(self) -> float:
        """By how much the share will still fall, by the plan."""
        return max(0.0, self.now - self.end) if self.plan is not None else 0.0

    @property
    def most_ahead(self) -> float:
        """By how much it may still fall: to zero where no plan is known."""
        if self.is_known or self.is_complete:
            return self.ahead
        return 1.0 if isnan(self.now) else self.now

    @property
    def is_warming(self) -> bool:
        """Whether the warm-up is not over, or the rate is still to rise to its peak."""
        return 0 < self.step < self.warmup

    @property
    def warmup(self) -> int:
        """The last step of the warm-up, by the plan; a cool-down that begins before does not end it."""
        return max(self.plan.peak_step, self.plan.warmup) if self.plan is not None else 0

    @property
    def is_known(self) -> bool:
        """Whether it is known how the rate goes on; a rate that fell to next to nothing has nowhere to go."""
        return self.plan is not None or self.now <= NEXT_TO_NOTHING

    @property
    def never_decays(self) -> bool:
        """Whether the rate stays at its peak, by the plan and so far."""
        return self.plan is not None and self.plan.kind == "constant" and not self.plan.has_end

    @property
    def is_complete(self) -> bool:
        """Whether all steps of the plan were made."""
        return 0 < self.last <= self.step

    @property
    def sentence(self) -> str:
        """What the plan still has in store, with a blank before it; empty where that is nothing."""
        if self.plan is None or self.ahead < LITTLE:
            return ""
        share = f", now {percent(self.now)} of what it was before," if self.now < 1 - LITTLE else ""
        return f" By its plan the learning rate{share} will fall to zero up to step {count(self.plan.last)}."

    def shares(self, step: Numbers) -> Numbers | None:
        """The share at each of these steps, by the rates as run or else as planned; None where it never changed."""
        rates = read_rates(self.series)
        if len(rates):
            rate = np.interp(step, rates.step, rates.rate)
        else:
            planned = planned_rates(self.series, step) if self.plan is not None else None
            if planned is None:
                return None
            rate = planned
        share = rate / _undecayed(self.plan, rates, step)
        if self.plan is not None:
            share = np.where(step < self.plan.peak_step, 1.0, share)
        return share if np.ptp(share) >= LITTLE else None

    def has_risen(self, step: Numbers, place: int) -> bool:
        """Whether the share was higher at the last of these steps than at that place among them."""
        shares = self.shares(step)
        return shares is not None and bool(shares[-1] - shares[place] >= LITTLE)

    def clock(self, step: Numbers, ends: tuple[float, ...]) -> Clock | None:
        """The sum of the learning rates at these steps and further on; None where no rate is known.

        A plan that ends on the way goes on as a longer one, for at a rate of nothing nothing can be learnt.
        """
        rates = self._rates(float(step[-1]))
        if rates is None or not rates.sums(step)[0] > 0:
            return None
        at, last = rates.sums(step), float(step[-1])
        further = tuple(self._further(rates, last, end) for end in ends)
        return Clock(at=at, ends=tuple(float(at[-1]) + each for each in further))

    def _rates(self, last: float) -> Rates | None:
        """As run, or else as planned."""
        rates = read_rates(self.series)
        if len(rates):
            return rates
        step = np.linspace(0.0, last, POINTS + 1)[1:]
        planned = planned_rates(self.series, step) if self.plan is not None else None
        return Rates(step=step, rate=planned) if planned is not None else None

    def _further(self, rates: Rates, step: float, end: float) -> float:
        """The sum of the rates from a step on to a later one."""
        if self.plan is None:
            # Where a rate has fallen to nothing and nobody knows by which law, a longer run is taken to be like it.
            known = (
                float(rates.rate[-1])
                if self.now > NEXT_TO_NOTHING
                else float(rates.sums(np.array([step]))[0]) / step
            )
            return known * (end - step)
        longer = replace(self.plan, last=max(self.plan.last, int(end)))
        later = np.linspace(step, end, POINTS + 1)[1:]
        return float(longer.rates(later).mean()) * (end - step)

    def decay(self, step: Numbers, *, scale: float) -> Decay:
        """What the rate did at these steps and will do, for the fits of a curve."""
        begin, end = (self.now, self.end) if self.ahead > 0 else (1.0, 1.0)
        return Decay(shares=self.shares(step), begin=begin, end=end, scale=scale)


def read_rates(series: Series) -> Rates:
    """The learning rates that steps logged; none where all are nought."""
    rates = series.steps.learning_rate
    kept = np.isfinite(rates) & (series.steps.step > 0)
    if not (rates[kept] > 0).any():
        kept = np.zeros_like(kept)
    return Rates(step=series.steps.step[kept].astype(np.float64), rate=rates[kept])


def read_outlook(series: Series) -> Outlook:
    """Where the learning rate is in its plan after the last step."""
    steps = [*series.steps.step[-1:].tolist(), *(each.step for each in series.evaluations[-1:])]
    step, rates = max(steps, default=0), read_rates(series)
    plan = read_plan(series)
    if plan is not None and (not _is_followed(series, rates) or (plan.has_end and plan.last <= 0)):
        plan = None
    at = np.array([float(max(step, 1))])
    if len(rates):
        now = float(rates.rate[-1] / _undecayed(plan, rates, rates.step[-1:])[0])
    else:
        now = float(plan.decay(at)[0]) if plan is not None else nan
    last = plan.last if plan is not None else series.started.max_steps if series.started is not None else 0
    end = float(plan.decay(np.array([float(max(step, last))]))[0]) if plan is not None else now
    if plan is not None and step < plan.peak_step:
        now = 1.0
    return Outlook(plan=plan, step=step, now=now, end=end, last=last, series=series)


def _undecayed(plan: Plan | None, rates: Rates, step: Numbers) -> Numbers:
    """The rate without its fall to zero at the end: by the plan, or by the law that most rates lie on."""
    if plan is not None:
        return np.maximum(plan.endless(step), 1e-30)
    peak = int(rates.rate.argmax())
    top, turn = float(rates.rate[peak]), float(rates.step[peak])
    later, run = rates.step[peak + 1 :], rates.rate[peak + 1 :]
    falling = top * np.sqrt(turn / np.maximum(later, 1.0))
    on_it, at_top = (np.abs(run - law) <= FOLLOWED * law for law in (falling, np.full_like(run, top)))
    if len(run) and on_it.mean() >= FEWEST_ON_IT and on_it.sum() > at_top.sum():
        return np.asarray(top * np.minimum(1.0, np.sqrt(turn / np.maximum(step, 1.0))))
    return np.full(len(step), top)


def _is_followed(series: Series, rates: Rates) -> bool:
    """Whether the last rates are those of the plan; where none was logged, nothing speaks against it."""
    late = rates.step[-max(1, int(LATE * len(rates))) :]
    planned = planned_rates(series, late)
    if planned is None or not len(late):
        return True
    run = rates.rate[-len(late) :]
    # A tool may count its steps from nought, or one ahead.
    slack = 2.0 / late if series.imported is not None else np.zeros_like(late)
    close = np.abs(run - planned) <= (FOLLOWED + slack) * planned + 1e-3 * float(rates.rate.max())
    return bool(np.mean(close) > 0.5)
