"""Learning rates as planned: the formulas of the recipe, as functions of the step."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from tandem.observe.facts import as_number
from tandem.observe.series.columns import Series
from tandem.runlog.event import TrainingStarted

__all__ = ["Plan", "planned_rates", "read_plan"]

Numbers = NDArray[np.float64]

NUMBER = r"([0-9.eE+-]+)"
COUNT = r"\d{1,15}"
WARMUP, LAST = f"(?P<warmup>{COUNT})", f"(?P<last>{COUNT})"
FORMULAS = {
    "transformer": rf"{NUMBER} · (?P<width>{COUNT})\^-0\.5 · min\(step\^-0\.5, step · {WARMUP}\^-1\.5\)",
    "inverse_sqrt": rf"{NUMBER} · min\(step / {WARMUP}, \({COUNT} / step\)\^0\.5\)",
    "cosine": rf"{NUMBER} · min\(1, step / {WARMUP}\), then half a cosine wave to zero after step {LAST}",
    "linear": rf"{NUMBER} · min\(1, step / {WARMUP}\), then a straight line to zero after step {LAST}",
    "constant": rf"{NUMBER} · min\(1, step / {WARMUP}\)",
}
REST = re.compile(
    rf"(?:; the last (?P<cooldown>{COUNT}) steps fall to zero(?: in a straight line)?)?(?:; never above {NUMBER})?"
)
"""All that may follow a formula: a sentence that says anything else is not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A formula of learning rates with its numbers."""

    kind: str
    rate: float
    """The peak; for `transformer` the factor."""
    warmup: int
    width: int
    last: int
    """The last step of the run; 0 where it is not known."""
    cooldown: int
    most: float = inf
    """What the rate is cut off at."""

    def rates(self, step: Numbers) -> Numbers:
        """The rate of each step, which counts from 1."""
        return self.endless(step) * self.decay(step)

    def endless(self, step: Numbers) -> Numbers:
        """The rate by the part of the formula that knows no last step: it goes on in the same way for ever."""
        step = np.maximum(step, 1.0)
        rise = np.minimum(1.0, step / self.warmup) if self.warmup else np.ones_like(step)
        turn = max(self.warmup, 1)
        laws = {
            "transformer": self.width**-0.5 * np.minimum(step**-0.5, step * turn**-1.5),
            "inverse_sqrt": np.minimum(step / turn, np.sqrt(turn / step)),
        }
        return np.asarray(np.minimum(self.rate * laws.get(self.kind, rise), self.most))

    def decay(self, step: Numbers) -> Numbers:
        """The factor from 1 to 0 by which the rate falls towards the last step; 1 where the formula has no end."""
        step = np.maximum(step, 1.0)
        done = np.clip((step - self.warmup) / max(1, self.last + 1 - self.warmup), 0.0, 1.0)
        fall = {"cosine": (1 + np.cos(np.pi * done)) / 2, "linear": 1 - done}
        left = (self.last + 1 - step) / (self.cooldown + 1) if self.cooldown else np.ones_like(step)
        return np.asarray(fall.get(self.kind, 1.0) * np.clip(left, 0.0, 1.0))

    @property
    def has_end(self) -> bool:
        """Whether the rate falls to zero at a last step."""
        return self.kind in {"cosine", "linear"} or self.cooldown > 0

    @property
    def formula(self) -> str:
        """With its numbers, as a person writes it."""
        warmup = max(self.warmup, 1)
        rise = f"{self.rate:g} · min(1, step / {warmup})"
        texts = {
            "transformer": f"{self.rate:g} · {self.width}^-0.5 · min(step^-0.5, step · {warmup}^-1.5)",
            "inverse_sqrt": f"{self.rate:g} · min(step / {warmup}, ({warmup} / step)^0.5)",
            "cosine": f"{rise}, then half a cosine wave to zero after step {self.last}",
            "linear": f"{rise}, then a straight line to zero after step {self.last}",
        }
        text = texts.get(self.kind, rise)
        text += f"; the last {self.cooldown} steps fall to zero" if self.cooldown else ""
        return f"{text}; never above {self.most:g}" if self.most < inf else text

    @property
    def peak_step(self) -> int:
        """The step with the highest rate, the first of them."""
        turn = max(1, self.warmup)
        if not self.cooldown:
            return turn
        places = np.unique(np.clip([turn, self.last - self.cooldown, self.last - self.cooldown + 1], 1, None))
        return int(places[np.argmax(self.rates(places.astype(np.float64)))])


def read_plan(series: Series) -> Plan | None:
    """The plan of the last start of training; None where nothing says it."""
    started = series.started
    read = _from_start(started) if started is not None else None
    last = started.max_steps if started is not None else 0
    return read or _from_recipe(series.recipe, last) or _from_facts(series, last)


def planned_rates(series: Series, steps: Numbers) -> Numbers | None:
    """What the rate of each step was to be when the step was made; None where no plan is known."""
    final = read_plan(series)
    if final is None:
        return None
    rates = final.rates(steps)
    starts = [start for _, start in series.starts]
    for number, start in enumerate(starts[:-1]):
        plan = _from_start(start)
        resumed = min(later.step for later in starts[number + 1 :])
        made = (steps > start.step) & (steps <= resumed)
        if plan is not None:
            rates = np.where(made, plan.rates(steps), rates)
    return rates


def _from_start(start: TrainingStarted) -> Plan | None:
    """The plan by its numbers, or by the sentence of logs that have no numbers of it."""
    if start.schedule_kind not in FORMULAS:
        return _from_sentence(start)
    is_whole = 0 < start.learning_rate < inf and (start.schedule_kind != "transformer" or start.width > 0)
    if not is_whole:
        return None
    return Plan(
        kind=start.schedule_kind,
        rate=start.learning_rate,
        warmup=max(0, start.warmup_steps),
        width=max(1, start.width),
        last=start.max_steps,
        cooldown=max(0, start.cooldown_steps),
    )


def _from_sentence(start: TrainingStarted) -> Plan | None:
    kind, _, text = start.schedule.partition(": ")
    formula = re.match(FORMULAS[kind], text) if kind in FORMULAS else None
    rest = REST.fullmatch(text, formula.end()) if formula is not None else None
    rate = _read_number(formula[1]) if formula is not None else None
    most = _read_number(rest[2]) if rest is not None and rest[2] else inf
    if formula is None or rest is None or rate is None or most is None:
        return None
    numbers = {name: int(value) for name, value in formula.groupdict().items()}
    return Plan(
        kind=kind,
        rate=rate,
        warmup=numbers["warmup"],
        width=numbers.get("width", 1),
        last=numbers.get("last", start.max_steps),
        cooldown=int(rest["cooldown"] or 0),
        most=most,
    )


def _read_number(text: str) -> float | None:
    try:
        return as_number(float(text))
    except ValueError:
        return None


def _from_recipe(recipe: Mapping[str, object], last: int) -> Plan | None:
    optim, model, train = (recipe.get(name) for name in ("optim", "model", "train"))
    if not isinstance(optim, Mapping) or optim.get("schedule") not in FORMULAS:
        return None
    width = model.get("width") if isinstance(model, Mapping) else None
    planned = train.get("max_steps") if isinstance(train, Mapping) else None
    rate = as_number(optim.get("learning_rate"))
    if rate is None or (optim["schedule"] == "transformer" and as_number(width) is None):
        return None
    return Plan(
        kind=str(optim["schedule"]),
        rate=rate,
        warmup=int(as_number(optim.get("warmup_steps")) or 0),
        width=int(as_number(width) or 1),
        last=last or int(as_number(planned) or 0),
        cooldown=int(as_number(optim.get("cooldown_steps")) or 0),
    )


def _from_facts(series: Series, last: int) -> Plan | None:
    """Of an imported run, whose transformer policy is the one that is known."""
    told = series.imported.facts.get("schedule") if series.imported is not None else None
    if not isinstance(told, Mapping):
        return None
    rate, warmup, width = (as_number(told.get(name)) for name in ("learning_rate", "warmup_steps", "d_model"))
    if rate is None or not warmup or not width:
        return None
    factor = as_number(told.get("coefficient"))
    rate *= 1.0 if factor is None else factor
    most = as_number(told.get("max_lr"))
    return Plan(
        kind="transformer",
        rate=rate,
        warmup=int(warmup),
        width=int(width),
        last=last,
        cooldown=0,
        most=inf if most is None else most,
    )
