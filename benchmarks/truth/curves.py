"""How a simulated run learns: the true curves, and what evaluations see of them."""

import math
from dataclasses import dataclass

import numpy as np
from benchmarks.truth.scenario import Learning, Plan, Scenario
from numpy.typing import NDArray

__all__ = ["Judged", "judge_learning", "learning_rate", "train_loss", "true_bleu", "true_valid"]

Numbers = NDArray[np.float64]
_MORE = 1.5


def true_valid(learning: Learning, step: Numbers) -> Numbers:
    """Valid loss without noise."""
    with np.errstate(invalid="ignore"):
        fallen = learning.floor + learning.span * (
            1 + np.minimum(step, learning.turns_at) / learning.scale
        ) ** (-learning.power)
        if math.isfinite(learning.turns_at):
            fallen = fallen + learning.rises_by * _past(learning, step) ** 1.3
    return _broken(learning, step, fallen)


def true_probe(learning: Learning, step: Numbers) -> Numbers:
    """Loss on training pairs, measured like the valid loss: it goes on falling where the valid loss rises."""
    valid = true_valid(
        Learning(floor=learning.floor, span=learning.span, scale=learning.scale, power=learning.power), step
    )
    lower = np.maximum(valid - learning.gap, 0.5 * valid)
    if math.isfinite(learning.turns_at):
        lower = lower * np.exp(-0.9 * _past(learning, step))
    return _broken(learning, step, lower)


def true_bleu(learning: Learning, step: Numbers) -> Numbers:
    """BLEU without noise."""
    risen = learning.top * (1 - (1 + step / learning.bleu_scale) ** -learning.bleu_power)
    if math.isfinite(learning.turns_at):
        risen = risen - learning.bleu_falls_by * _past(learning, step)
    if learning.breaks_at is not None:
        risen = np.where(step > learning.breaks_at, 0.1, risen)
    return np.maximum(risen, 0.0)


def _past(learning: Learning, step: Numbers) -> Numbers:
    return np.maximum(0.0, step - learning.turns_at) / learning.turns_at


def _broken(learning: Learning, step: Numbers, loss: Numbers) -> Numbers:
    if learning.spikes_at:
        since = step - learning.spikes_at
        fallen = learning.spikes_by * np.exp(-np.maximum(0.0, since) / learning.spike_steps)
        loss = loss + np.where(since >= 0, fallen, 0.0)
    if learning.breaks_at is None:
        return loss
    after = loss + 1.5 if math.isnan(learning.breaks_to) else np.full_like(loss, learning.breaks_to)
    return np.where(step > learning.breaks_at, after, loss)


def train_loss(scenario: Scenario, step: Numbers, noise: np.random.Generator) -> Numbers:
    """What is minimised: with dropout and smoothing, of another batch in every step."""
    learning = scenario.learning
    smooth = true_probe(learning, step) * 1.04 + 0.6
    loss = smooth + noise.normal(0, 0.09, len(step)) * math.sqrt(12_000 / scenario.tokens)
    if learning.breaks_at is not None and math.isnan(learning.breaks_to):
        loss = np.where(step > learning.breaks_at, math.nan, loss)
    return np.asarray(loss)


def learning_rate(scenario: Scenario, step: Numbers) -> Numbers:
    """As the schedule has it, which may begin anew."""
    plan: Plan = scenario.plan
    at = np.where(step > plan.rate_restarts_at, step - plan.rate_restarts_at, step)
    rise = at / plan.warmup
    if plan.schedule == "transformer":
        factor = plan.learning_rate / math.sqrt(scenario.width)
        return np.asarray(factor * np.minimum(at**-0.5, at * plan.warmup**-1.5))
    if plan.schedule == "cosine":
        done = np.clip((at - plan.warmup) / (plan.max_steps + 1 - plan.warmup), 0, 1)
        return np.asarray(plan.learning_rate * np.minimum(1, rise) * (1 + np.cos(np.pi * done)) / 2)
    if plan.schedule == "constant":
        return np.asarray(plan.learning_rate * np.minimum(1, rise))
    return np.asarray(plan.learning_rate * np.minimum(rise, np.sqrt(plan.warmup / at)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What evaluations saw, a value each."""

    step: NDArray[np.int64]
    valid: Numbers
    probe: Numbers
    bleu: Numbers


def judge_learning(scenario: Scenario, noise: np.random.Generator) -> Judged:
    """Look at the true curves as evaluations do: with the noise of training's last steps."""
    plan, learning = scenario.plan, scenario.learning
    every = plan.evaluate_every or plan.steps + 1
    step = np.arange(every, plan.steps + 1, every)
    at = step.astype(float)
    shared = noise.normal(0, learning.noise, len(step))
    wave = learning.cycle * np.sin(2 * np.pi * at / learning.cycle_steps)
    valid = true_valid(learning, at) + shared + wave
    if learning.lost_evaluation >= 0:
        valid[learning.lost_evaluation] = math.nan
    return Judged(
        step=step,
        valid=valid,
        probe=true_probe(learning, at) + 0.6 * shared + noise.normal(0, learning.noise / 2, len(step)),
        bleu=np.maximum(0.0, true_bleu(learning, at) + noise.normal(0, learning.bleu_noise, len(step))),
    )
