"""Draws what a model learns, and by which plan of the learning rate."""

from math import inf, log

import numpy as np
from benchmarks.truth.world.dice import log_uniform
from benchmarks.truth.world.world import Learning, Model, Shape, Training

__all__ = ["draw_learning", "draw_training"]


def draw_training(rng: np.random.Generator, steps: int, model: Model) -> Training:
    """A plan for about so many steps."""
    schedule = str(rng.choice(["transformer", "inverse_sqrt", "cosine", "linear", "constant"]))
    # Some are stopped by hand before the warm-up is over.
    warmup = int(steps * (rng.uniform(1.1, 4) if rng.random() < 0.03 else log_uniform(rng, 0.01, 0.3)))
    updates = int(log_uniform(rng, 0.05, 4) * steps) + 2
    return Training(
        schedule=schedule,
        learning_rate=log_uniform(rng, 0.5, 4) if schedule == "transformer" else log_uniform(rng, 1e-4, 5e-3),
        warmup=max(1, warmup) if schedule in {"transformer", "inverse_sqrt"} else warmup,
        cooldown=int(steps * rng.uniform(0.05, 0.4)) if rng.random() < 0.2 else 0,
        max_tokens=int(1e12) if rng.random() < 0.1 else 0,
        max_minutes=1e5 if rng.random() < 0.1 else 0.0,
        updates_per_epoch=updates,
        pairs=updates * max(1, model.tokens_per_update // 28),
        layout="packed" if model.precision in {"bf16", "fp16"} else "padded",
        deviation=(int(rng.integers(2, steps)), float(rng.uniform(0.3, 3))) if rng.random() < 0.04 else None,
    )


def draw_learning(
    rng: np.random.Generator, steps: int, training: Training, *, vocabulary: int, valid_tokens: int
) -> Learning:
    """A learner for about so many steps."""
    shape: Shape = "power"
    kind = rng.random()
    if kind < 0.3:
        shape = "exponential"
    elif kind < 0.35:
        shape = "plateau"
    floor = log(vocabulary) * float(rng.uniform(0.13, 0.36))
    drop = log(vocabulary) * float(rng.uniform(0.98, 1.05)) - floor
    diverges, overfits = rng.random() < 0.05, rng.random() < 0.3 and shape != "plateau"
    is_warming = training.warmup > steps
    # Neighbouring models differ on a small set by chance; the rest is how far each step throws the weights.
    noise = float(np.hypot(log_uniform(rng, 0.0005, 0.02), 0.4 / np.sqrt(valid_tokens)))
    exponent = float(rng.uniform(0.5, 1.0)) if shape == "exponential" else log_uniform(rng, 0.3, 1.6)
    # What is left to learn at the end of the run, if the rate stayed at its highest.
    left = log_uniform(rng, 0.08, 0.4) if is_warming else log_uniform(rng, 0.002, 0.25)
    if shape == "power":
        # A law that began before the first step is no law of this run.
        left = max(left, 250**-exponent)
    ages = np.log(1 / left) ** (1 / exponent) if shape == "exponential" else left ** (-1 / exponent) - 1
    return Learning(
        shape=shape,
        floor=floor,
        drop=drop,
        exponent=exponent,
        scale=float(steps / ages) if shape != "plateau" else 0.05 * steps,
        annealing=float(rng.uniform(0.0, 0.12)) if rng.random() < 0.7 else 0.0,
        plateau_loss=floor + drop * float(rng.uniform(0.75, 0.85)),
        gap=log_uniform(rng, 0.01, 0.4),
        overfit_step=float(rng.uniform(0.1, 1.3) * steps) if overfits else inf,
        overfit=log_uniform(rng, 0.02, 2.0) if overfits else 0.0,
        overfit_power=float(rng.uniform(1.0, 1.6)),
        forgotten_share=float(rng.choice([0.0, 0.3, 1.0])),
        diverge_step=int(rng.uniform(0.15, 0.95) * steps) if diverges else 0,
        diverge_to=inf if rng.random() < 0.3 else floor + drop * float(rng.uniform(0.9, 1.4)),
        spike=(
            int(rng.uniform(0.1, 0.98) * steps),
            log_uniform(rng, 0.05, 1.5),
            log_uniform(rng, 0.01, 0.08) * steps,
        )
        if rng.random() < 0.06
        else None,
        noise=noise,
        noise_memory=float(rng.choice([0.0, 0.0, 0.3, 0.6])),
        best_bleu=float(rng.uniform(12, 42)),
        bleu_slope=float(rng.uniform(0.5, 1.6)),
        bleu_noise=log_uniform(rng, 0.05, 0.8),
        step_noise=log_uniform(rng, 0.02, 0.15),
        dropout_cost=float(rng.uniform(0.02, 0.5)),
    )
