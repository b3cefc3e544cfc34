"""What a model learns, without noise: losses and BLEU by step under a learning rate, and how they go on."""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from benchmarks.truth.world.world import Learning, World
from numpy.typing import NDArray

from tandem.config import OptimSection
from tandem.train.schedule import build_schedule, describe_schedule

__all__ = ["Curves", "bleu_of", "curves", "describe_plan", "gain_spread", "learning_rates"]

_UNCOUNTED = 0.02
"""Share of the run over which the loss follows a learning rate that changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Noise-free numbers by step; index 0 is before the first."""

    valid: NDArray[np.float64]
    probe: NDArray[np.float64]
    bleu: NDArray[np.float64]
    learning_rate: NDArray[np.float64]
    """Of step 1 at index 0."""


def _section(world: World) -> OptimSection:
    training = world.training
    return OptimSection(
        schedule=training.schedule,  # type: ignore[arg-type]
        learning_rate=training.learning_rate,
        warmup_steps=training.warmup,
        cooldown_steps=training.cooldown,
    )


def describe_plan(world: World, max_steps: int) -> str:
    """The sentence that the log has for the schedule."""
    return describe_schedule(_section(world), width=world.model.width, max_steps=max_steps)


def planned_rates(world: World, max_steps: int, first: int, last: int) -> NDArray[np.float64]:
    """Learning rates of the steps by one plan."""
    rate = build_schedule(_section(world), width=world.model.width, max_steps=max_steps)
    return np.array([rate(step) for step in range(first, last + 1)])


def learning_rates(world: World, firsts: list[int]) -> NDArray[np.float64]:
    """Learning rates as used, of the steps that stand; `firsts` has the first step of each start."""
    rates = np.zeros(world.steps)
    for first, start in zip(firsts, world.starts, strict=True):
        rates[first - 1 : start.last_step] = planned_rates(world, start.max_steps, first, start.last_step)
    if world.training.deviation is not None:
        step, factor = world.training.deviation
        rates[step - 1 :] *= factor
    return rates


def curves(world: World, rates: NDArray[np.float64]) -> Curves:
    """The curves under these learning rates, which may go on beyond the end of the run."""
    return _curves(world.learning, rates, peak=float(rates[: world.steps].max()), steps=world.steps)


def _curves(learning: Learning, rates: NDArray[np.float64], *, peak: float, steps: int) -> Curves:
    relative = rates / peak
    progress = np.concatenate([[0.0], np.cumsum(relative)])
    warmth = _smooth(relative, max(2.0, _UNCOUNTED * steps))
    base = _falling(learning, progress) + learning.annealing * warmth * (
        1 - np.exp(-progress / learning.scale)
    )
    at = np.arange(len(progress))
    late = (
        np.maximum(at - learning.overfit_step, 0.0) / steps
        if learning.overfit_step < inf
        else np.zeros(len(at))
    )
    rise = learning.overfit * late**learning.overfit_power
    if learning.spike is not None:
        step, height, length = learning.spike
        base = base + height * np.exp(-np.maximum(at - step, 0) / length) * (at >= step)
    done = (base[0] - base) / max(base[0] - learning.floor, 1e-9)
    valid = base + rise
    probe = (
        base - learning.gap * np.clip(done, 0, 1) ** 2 * np.sqrt(at / steps) - 2.0 * learning.overfit * late
    )
    probe = np.maximum(probe, 0.25 * learning.floor)
    bleu = bleu_of(learning, base + learning.forgotten_share * rise)
    if learning.diverge_step:
        apart = np.clip((at - learning.diverge_step) / 8.0, 0.0, 1.0)
        if learning.diverge_to == inf:
            with np.errstate(invalid="ignore"):
                valid, probe = (np.where(apart > 0, np.nan, curve) for curve in (valid, probe))
        else:
            valid, probe = (curve + apart * (learning.diverge_to - curve) for curve in (valid, probe))
        bleu = np.where(apart > 0, 0.0, bleu)
    return Curves(valid=valid, probe=probe, bleu=bleu, learning_rate=rates)


def bleu_of(learning: Learning, loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """BLEU of a model with this loss."""
    return learning.best_bleu * np.exp(-learning.bleu_slope * np.maximum(loss - learning.floor, -0.5))


def _falling(learning: Learning, progress: NDArray[np.float64]) -> NDArray[np.float64]:
    age = progress / learning.scale
    if learning.shape == "power":
        return learning.floor + learning.drop * (1 + age) ** -learning.exponent
    if learning.shape == "exponential":
        return learning.floor + learning.drop * np.exp(-(age**learning.exponent))
    return learning.plateau_loss + (learning.floor + learning.drop - learning.plateau_loss) * np.exp(-age)


def _smooth(relative: NDArray[np.float64], steps: float) -> NDArray[np.float64]:
    """Exponential moving average, with its start at index 0."""
    kernel = np.exp(-np.arange(int(6 * steps)) / steps)
    mean = np.convolve(relative, kernel)[: len(relative)] / kernel.sum()
    return np.concatenate([[0.0], mean])


def gain_spread(
    world: World, rates: NDArray[np.float64], evaluated: NDArray[np.int64]
) -> tuple[float, float]:
    """Standard deviations that nobody can go below in telling the gains in loss and in BLEU from these evaluations.

    By the curvature of the likelihood (Cramér and Rao) for somebody who knows the shape but not its numbers.
    """
    learning, last = world.learning, world.steps
    peak = float(rates[:last].max())

    def numbers(changed: Learning) -> tuple[NDArray[np.float64], float]:
        curve = _curves(changed, rates, peak=peak, steps=last)
        return curve.valid[evaluated], float(curve.valid[last] - curve.valid[-1])

    seen, gain = numbers(learning)
    sizes = {
        "floor": 1.0,
        "drop": learning.drop,
        "exponent": learning.exponent,
        "scale": learning.scale,
        "annealing": 0.2,
    }
    bumps = {name: 0.01 * size for name, size in sizes.items()}
    priors = {**sizes, "exponent": 0.5 * learning.exponent, "annealing": 0.1}
    slopes, gains, prior = [], [], []
    for name, bump in bumps.items():
        moved, moved_gain = numbers(replace(learning, **{name: getattr(learning, name) + bump}))
        slopes.append((moved - seen) / bump)
        gains.append((moved_gain - gain) / bump)
        prior.append(priors[name] ** -2)
    slope, direction = np.array(slopes), np.array(gains)
    memory = learning.noise_memory
    noise = learning.noise * np.sqrt((1 + memory) / (1 - memory))
    information = slope @ slope.T / noise**2 + np.diag(prior)
    spread = float(np.sqrt(direction @ np.linalg.solve(information, direction)))
    steepness = learning.best_bleu * learning.bleu_slope
    by_loss = spread * steepness
    by_bleu = learning.bleu_noise * np.sqrt(4 / max(len(evaluated), 1))
    return spread, float(min(by_loss, by_bleu))
