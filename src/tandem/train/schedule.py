"""Learning rates: pure functions of the step, which counts from 1."""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import TypeAlias

from tandem.config import OptimSection

__all__ = ["SCHEDULES", "Schedule", "build_schedule", "describe_schedule"]

Schedule: TypeAlias = Callable[[int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The numbers that a schedule is made of."""

    rate: float
    """The peak; for `transformer` the factor."""
    warmup: int
    width: int
    last: int
    """The last step of the run."""

    def rise(self, step: int) -> float:
        """From 0 to 1 over the warm-up, and 1 from there on."""
        return min(1.0, step / self.warmup) if self.warmup else 1.0

    def done(self, step: int) -> float:
        """From 0 at the end of the warm-up to 1 just after the last step, whose rate is therefore not 0."""
        return min(1.0, max(0, step - self.warmup) / (self.last + 1 - self.warmup))


def transformer(step: int, course: Course) -> float:
    """As in the first paper: factor · width^-0.5 · min(step^-0.5, step · warmup^-1.5)."""
    return (
        course.rate / sqrt(course.width) * min(1 / sqrt(step), step / (course.warmup * sqrt(course.warmup)))
    )


def inverse_sqrt(step: int, course: Course) -> float:
    """Warm-up to the peak, then down with the square root of the step."""
    return course.rate * min(step / course.warmup, sqrt(course.warmup / step))


def cosine(step: int, course: Course) -> float:
    """Warm-up to the peak, then half a cosine wave down to zero at the end of the run."""
    return course.rate * course.rise(step) * (1 + cos(pi * course.done(step))) / 2


def linear(step: int, course: Course) -> float:
    """Warm-up to the peak, then a straight line down to zero at the end of the run."""
    return course.rate * course.rise(step) * (1 - course.done(step))


def constant(step: int, course: Course) -> float:
    """Warm-up to the peak, then no change."""
    return course.rate * course.rise(step)


SCHEDULES: dict[str, Callable[[int, Course], float]] = {
    "transformer": transformer,
    "inverse_sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}

FORMULAS = {
    "transformer": "{rate:g} · {width}^-0.5 · min(step^-0.5, step · {warmup}^-1.5)",
    "inverse_sqrt": "{rate:g} · min(step / {warmup}, ({warmup} / step)^0.5)",
    "cosine": "{rate:g} · min(1, step / {warmup}), then half a cosine wave to zero after step {last}",
    "linear": "{rate:g} · min(1, step / {warmup}), then a straight line to zero after step {last}",
    "constant": "{rate:g} · min(1, step / {warmup})",
}


def build_schedule(optim: OptimSection, *, width: int, max_steps: int) -> Schedule:
    """The learning rate of each step, the last ones falling to zero where the recipe has a cool-down."""
    base, course = SCHEDULES[optim.schedule], _course(optim, width, max_steps)

    def learning_rate(step: int) -> float:
        left = (max_steps + 1 - step) / (optim.cooldown_steps + 1)
        return base(step, course) * min(1.0, max(0.0, left))

    return learning_rate if optim.cooldown_steps else lambda step: base(step, course)


def describe_schedule(optim: OptimSection, *, width: int, max_steps: int) -> str:
    """The formula with its numbers."""
    course = _course(optim, width, max_steps)
    formula = FORMULAS[optim.schedule].format(
        rate=course.rate, width=course.width, warmup=course.warmup or 1, last=course.last
    )
    cooldown = f"; the last {optim.cooldown_steps} steps fall to zero in a straight line"
    return f"{optim.schedule}: {formula}{cooldown if optim.cooldown_steps else ''}"


def _course(optim: OptimSection, width: int, max_steps: int) -> Course:
    return Course(rate=optim.learning_rate, warmup=optim.warmup_steps, width=width, last=max_steps)
