"""Simulated runs whose particulars are drawn at random: nobody chose them, so nothing can have been fitted to them."""

import numpy as np
from benchmarks.truth.scenario import Hardware, Learning, Link, Plan, Reader, Scenario, Work

__all__ = ["draw_scenario"]

_RATES = (1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 1e11)


def draw_scenario(number: int) -> Scenario:
    """The same number is the same run."""
    dice = np.random.default_rng([number, 77])
    steps = int(dice.integers(600, 5000))
    return Scenario(
        name=f"drawn-{number:03d}",
        story="drawn at random",
        parameters=int(10 ** dice.uniform(6.0, 8.2)),
        learning=_draw_learning(dice, steps),
        hardware=Hardware(hosts=int(dice.integers(1, 4)), ranks_per_host=int(dice.integers(1, 4))),
        work=_draw_work(dice),
        reader=Reader(batch_s=float(10 ** dice.uniform(-2.5, 0.0)), jitter=float(dice.uniform(0.02, 0.4))),
        link=Link(
            bits_per_s=float(dice.choice(_RATES)) * float(dice.uniform(0.6, 1.0)),
            latency_s=float(10 ** dice.uniform(-5, -3)),
            slows_compute=float(dice.uniform(0.0, 0.2)),
        ),
        plan=Plan(
            steps=steps,
            max_steps=steps,
            warmup=max(1, steps // int(dice.integers(5, 30))),
            evaluate_every=max(1, steps // int(dice.integers(3, 40))),
            save_every=max(1, steps // 4),
            schedule=str(dice.choice(["inverse_sqrt", "constant"])),
        ),
        seed=number + 1000,
    )


def _draw_learning(dice: np.random.Generator, steps: int) -> Learning:
    turns = steps * float(dice.uniform(0.2, 0.8)) if dice.random() < 0.3 else np.inf
    return Learning(
        floor=float(dice.uniform(0.8, 2.5)),
        span=float(dice.uniform(3.0, 7.0)),
        scale=steps * float(10 ** dice.uniform(-2.3, -0.3)),
        power=float(dice.uniform(0.5, 1.8)),
        top=float(dice.uniform(15, 40)),
        bleu_scale=steps * float(10 ** dice.uniform(-2.0, -0.3)),
        bleu_power=float(dice.uniform(0.8, 1.8)),
        noise=float(10 ** dice.uniform(-2.7, -1.5)),
        bleu_noise=float(dice.uniform(0.05, 0.4)),
        turns_at=turns,
        rises_by=float(10 ** dice.uniform(-2.0, 0.0)),
        bleu_falls_by=float(dice.uniform(0.0, 3.0)),
    )


def _draw_work(dice: np.random.Generator) -> Work:
    is_slow = dice.random() < 0.25
    return Work(
        compute_s=float(10 ** dice.uniform(-1.3, 0.5)),
        batches=int(dice.choice([1, 1, 1, 4])),
        jitter=float(dice.uniform(0.005, 0.1)),
        tails=float(dice.uniform(0.0, 0.03)),
        slow_rank=0 if is_slow else -1,
        slow_factor=float(dice.uniform(1.1, 2.0)) if is_slow else 1.0,
        flops_share=float(dice.uniform(0.1, 0.7)),
    )
