"""Draws a world by its seed: every weakness at random, all of them together, and no list of cases."""

from dataclasses import replace

import numpy as np
from benchmarks.truth.world.dice import log_uniform
from benchmarks.truth.world.draw_evidence import draw_clocks, draw_evidence
from benchmarks.truth.world.draw_learning import draw_learning, draw_training
from benchmarks.truth.world.world import (
    Cluster,
    Compute,
    Ending,
    Loader,
    Model,
    Network,
    Pauses,
    Scope,
    Stall,
    Start,
    World,
)

__all__ = ["draw"]

_HOSTS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
_GPUS = ("Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB", "NVIDIA L4", "NVIDIA H200")
_MEGABIT = 125_000.0
_SPEEDS = (50, 100, 200, 500, 1000, 2500, 10_000, 25_000, 100_000)
_LONGEST_TRANSFER_S = 40.0
_ROWS = 3600
"""Lines about steps that a run may have, so that a thousand runs take a minute."""


def draw(seed: int) -> World:
    """The world with this number."""
    rng = np.random.default_rng([seed, 0])
    cluster, workers = _draw_cluster(rng)
    ranks = sum(workers)
    model = _draw_model(rng, cluster.device)
    steps = int(min(log_uniform(rng, 130, 1900), _ROWS / ranks))
    # How long the exchange is beside computing is drawn, and the link that comes nearest is taken.
    step_s, ratio = log_uniform(rng, 0.03, 8), log_uniform(rng, 0.02, 6)
    network, transfer_s = _draw_network(
        rng, workers, model, wanted_s=step_s * ratio, has_gpus=cluster.has_gpus
    )
    if transfer_s > _LONGEST_TRANSFER_S:
        model = replace(model, parameters=int(model.parameters * _LONGEST_TRANSFER_S / transfer_s))
        transfer_s = _LONGEST_TRANSFER_S
    if len(workers) > 1:
        step_s = float(np.clip(transfer_s / ratio, 0.02, 30))
    compute = _draw_compute(rng, workers, step_s=step_s, steps=steps, has_gpus=cluster.has_gpus)
    loader = _draw_loader(rng, ranks, step_s=step_s, transfer_s=transfer_s)
    training = draw_training(rng, steps, model)
    pauses = _draw_pauses(rng, steps, step_s=step_s, launcher=cluster.launcher)
    starts = _draw_starts(rng, workers, steps, pauses, launcher=cluster.launcher)
    # A warm-up that ends one step after the plan divides by zero in the schedules that fall to its end.
    if training.warmup - 1 in {*(start.max_steps for start in starts), -(-3 * steps // 2)}:
        training = replace(training, warmup=training.warmup + 1)
    wall_s = steps * (step_s + transfer_s)
    evidence = draw_evidence(rng, cluster, workers, wall_s=wall_s, has_evaluations=pauses.evaluate_every > 0)
    learning = draw_learning(
        rng, steps, training, vocabulary=model.vocabulary, valid_tokens=evidence.valid_tokens
    )
    return World(
        seed=seed,
        cluster=cluster,
        starts=starts,
        model=model,
        compute=compute,
        network=network,
        loader=loader,
        pauses=pauses,
        training=training,
        learning=learning,
        clocks=draw_clocks(rng, len(workers)),
        evidence=evidence,
    )


def _draw_cluster(rng: np.random.Generator) -> tuple[Cluster, tuple[int, ...]]:
    ranks = int(rng.choice([1, 2, 3, 4, 6, 8, 12, 16], p=[0.1, 0.28, 0.08, 0.22, 0.06, 0.14, 0.04, 0.08]))
    most = min(ranks, len(_HOSTS))
    hosts = 1 if rng.random() < 0.15 else int(rng.integers(min(2, most), most + 1))
    workers = tuple(ranks // hosts + (number < ranks % hosts) for number in range(hosts))
    device = str(rng.choice(_GPUS)) if rng.random() < 0.45 else "cpu"
    launcher = "one host" if hosts == 1 else ("hosts" if rng.random() < 0.7 else "torchrun")
    cores = int(rng.choice([4, 8, 16, 32, 64]))
    cluster = Cluster(hosts=_HOSTS[:hosts], device=device, cores=cores, launcher=launcher)  # type: ignore[arg-type]
    return cluster, workers


def _draw_model(rng: np.random.Generator, device: str) -> Model:
    has_gpus = device != "cpu"
    parameters = int(log_uniform(rng, 2e7, 2.5e8) if has_gpus else log_uniform(rng, 3e5, 6e7))
    precisions = {"cpu": ("fp32",), _GPUS[0]: ("fp16", "fp32")}.get(device, ("bf16", "bf16", "tf32"))
    return Model(
        parameters=parameters,
        vocabulary=int(rng.choice([1000, 4000, 8000, 16000, 32768])),
        width=int(rng.choice([128, 256, 512, 1024])),
        tokens_per_update=int(log_uniform(rng, 4000, 200_000) if has_gpus else log_uniform(rng, 500, 30_000)),
        precision=str(rng.choice(precisions)),
        peak_share=float(rng.uniform(0.15, 0.7)),
        has_averages=bool(rng.random() < 0.2),
    )


def _draw_network(
    rng: np.random.Generator, workers: tuple[int, ...], model: Model, *, wanted_s: float, has_gpus: bool
) -> tuple[Network, float]:
    """The links, and the seconds that gradients take on them, which are about those wanted."""
    ranks = sum(workers)
    sent = 2 * (ranks - 1) / ranks * model.gradient_bytes
    nominal = (
        min(_SPEEDS, key=lambda speed: abs(np.log(max(sent, 1.0) / (speed * _MEGABIT) / wanted_s))) * _MEGABIT
    )
    delivered = nominal * rng.uniform(0.85, 0.97)
    claimed = 0.0 if rng.random() < 0.2 else nominal
    if rng.random() < 0.15:
        # A virtual driver claims what the machine below it never gives.
        claimed, delivered = 10_000 * _MEGABIT, float(rng.choice([100, 200, 500, 1000])) * _MEGABIT
    links = [delivered * float(rng.uniform(0.95, 1.0)) for _ in workers]
    if rng.random() < 0.12:
        links[int(rng.integers(len(links)))] *= float(rng.uniform(0.1, 0.6))
    changes: tuple[tuple[float, float], ...] = ()
    if rng.random() < 0.15:
        begin, factor = float(rng.uniform(0.2, 0.8)), float(log_uniform(rng, 0.1, 4.0))
        changes = ((begin, factor),)
        if rng.random() < 0.4:
            changes = (*changes, (float(rng.uniform(begin, 1.0)), 1.0))
    micro = int(rng.choice([1, 2, 4, 8]))
    internal = log_uniform(rng, 2e10, 2e11) if has_gpus else log_uniform(rng, 8e8, 6e9)
    seconds = 0.0 if ranks == 1 else sent / (internal if len(workers) == 1 else min(links))
    can_stall, loses = rng.random() < 0.1, rng.random() < 0.12
    network = Network(
        bytes_per_s=tuple(links),
        nominal_bits_per_s=int(claimed * 8),
        latency_s=log_uniform(rng, 2e-5, 2e-3) if rng.random() < 0.9 else 0.02,
        internal_bytes_per_s=internal,
        buckets=max(2, min(8, model.gradient_bytes // 2**20), model.gradient_bytes // (25 * 2**20)),
        # Only the last of the micro-batches sends.
        first_bucket=1 - float(rng.uniform(0.5, 0.95)) / micro,
        slowing=float(rng.uniform(0.0, 0.1) if has_gpus else rng.uniform(0.0, 0.45)),
        jitter=log_uniform(rng, 0.01, 0.35),
        changes=changes,
        stall_chance=log_uniform(rng, 0.002, 0.03) if can_stall else 0.0,
        stall_s=log_uniform(rng, 1, 10) * seconds + 0.2,
        loss_chance=log_uniform(rng, 0.005, 0.3) if loses else 0.0,
        timeout_s=float(rng.uniform(0.2, 0.8)),
        background_bytes_per_s=log_uniform(rng, 1e2, 1e5) if rng.random() < 0.9 else 0.1 * delivered,
        has_mesh=bool(rng.random() < 0.7),
    )
    return network, seconds


def _draw_compute(
    rng: np.random.Generator, workers: tuple[int, ...], *, step_s: float, steps: int, has_gpus: bool
) -> Compute:
    ranks, hosts = sum(workers), len(workers)
    slow_ranks: tuple[tuple[int, float], ...] = ()
    slow_hosts: tuple[tuple[int, float], ...] = ()
    heat = None
    if rng.random() < 0.2:
        slow_ranks = ((int(rng.integers(ranks)), float(rng.uniform(1.05, 2.0))),)
    if rng.random() < 0.15:
        slow_hosts = ((int(rng.integers(hosts)), float(rng.uniform(1.05, 2.0))),)
    if rng.random() < 0.12:
        heat = (int(rng.integers(hosts)), float(rng.uniform(1.05, 1.6)), float(rng.uniform(0.05, 0.7)))
    return Compute(
        step_s=step_s,
        backward_share=float(rng.uniform(0.55, 0.72)),
        optimizer_share=log_uniform(rng, 0.005, 0.1),
        other_share=log_uniform(rng, 0.001, 0.08),
        batch_spread=log_uniform(rng, 0.005, 0.1),
        imbalance=log_uniform(rng, 0.002, 0.08),
        jitter=log_uniform(rng, 0.002, 0.03) if has_gpus else log_uniform(rng, 0.005, 0.12),
        wander=float(rng.choice([0.0, 0.0, 0.01, 0.05])),
        slow_ranks=slow_ranks,
        slow_hosts=slow_hosts,
        heat=heat,
        first_step_s=step_s * log_uniform(rng, 0.3, 30),
        stalls=_draw_stalls(rng, workers, step_s=step_s, steps=steps),
    )


def _draw_stalls(
    rng: np.random.Generator, workers: tuple[int, ...], *, step_s: float, steps: int
) -> tuple[Stall, ...]:
    stalls: list[Stall] = []
    scopes: tuple[tuple[Scope, int], ...] = (("rank", sum(workers)), ("host", len(workers)), ("all", 1))
    while rng.random() < 0.25 and len(stalls) < 3:
        scope, count = scopes[int(rng.integers(3))]
        usual = Stall(scope=scope, number=int(rng.integers(count)), seconds=step_s * log_uniform(rng, 0.3, 5))
        kinds = (
            replace(usual, every_steps=int(rng.integers(10, 120))),
            replace(usual, every_s=step_s * log_uniform(rng, 15, 200)),
            replace(usual, chance=2.5 / steps, seconds=step_s * log_uniform(rng, 8, 60)),
            replace(usual, chance=log_uniform(rng, 0.01, 0.15)),
        )
        stalls.append(kinds[int(rng.choice(4, p=[0.3, 0.2, 0.25, 0.25]))])
    return tuple(stalls)


def _draw_loader(rng: np.random.Generator, ranks: int, *, step_s: float, transfer_s: float) -> Loader:
    step = step_s + 0.5 * transfer_s
    load = log_uniform(rng, 0.01, 0.5)
    if rng.random() < 0.2:
        load = log_uniform(rng, 0.7, 2.5)
    return Loader(
        build_s=load * step,
        spread=log_uniform(rng, 0.05, 0.5),
        depth=4,
        slow_rank=int(rng.integers(ranks)) if rng.random() < 0.1 else -1,
        slow_factor=float(rng.uniform(1.5, 6)),
        stall_chance=log_uniform(rng, 0.002, 0.05) if rng.random() < 0.12 else 0.0,
        stall_s=step * log_uniform(rng, 1, 20),
        epoch_s=step * log_uniform(rng, 0.5, 10) if rng.random() < 0.4 else 0.0,
    )


def _draw_pauses(rng: np.random.Generator, steps: int, *, step_s: float, launcher: str) -> Pauses:
    count = int(log_uniform(rng, 8, 60)) if rng.random() < 0.9 else int(rng.integers(1, 6))
    every = max(1, int(steps / count))
    loss_s, translate_s = step_s * log_uniform(rng, 0.2, 5), step_s * log_uniform(rng, 0.5, 20)
    blocked = step_s * log_uniform(rng, 0.01, 1.5)
    return Pauses(
        evaluate_every=every if rng.random() < 0.94 else 0,
        loss_s=loss_s,
        translate_s=translate_s,
        checkpoint_every=int(rng.integers(20, max(30, steps))) if rng.random() < 0.4 else 0,
        blocked_s=blocked,
        write_s=min(step_s * log_uniform(rng, 0.3, 10), every * step_s * 0.6),
        launch_s=float(rng.uniform(2, 12)),
        prepare_s=log_uniform(rng, 2, 200) if rng.random() < 0.5 and launcher != "torchrun" else 0.0,
        loop_s=log_uniform(rng, 1e-4, 5e-3),
    )


def _draw_starts(
    rng: np.random.Generator, workers: tuple[int, ...], steps: int, pauses: Pauses, *, launcher: str
) -> tuple[Start, ...]:
    """One start or several; the plan may get longer at one that was asked for."""
    count = int(rng.choice([1, 2, 3, 4], p=[0.74, 0.15, 0.07, 0.04]))
    least = max(25, 2 * pauses.evaluate_every)
    cuts = sorted(
        {int(cut) for cut in rng.integers(least, max(steps - 20, least + 1), count - 1) if cut < steps - 5}
    )
    last_ending = _pick_ending(rng, (0.7, 0.18, 0.12))
    max_steps = steps if last_ending == "finish" else int(steps * rng.uniform(1.02, 3))
    is_longer, now, gap = rng.random() < 0.35, workers, 0.0
    starts: list[Start] = []
    for number, last in enumerate([*cuts, steps]):
        ending = last_ending if last == steps else _pick_ending(rng, (0.0, 0.45, 0.55))
        plan = max_steps
        if last < steps and is_longer and ending == "stop":
            # It came to the end of its plan, and goes on by a longer one.
            plan, ending = last, "finish"
        is_rejected = bool(number and starts[-1].ending == "kill" and rng.random() < 0.12)
        start = Start(
            workers=now, last_step=last, ending=ending, max_steps=plan, gap_s=gap, is_rejected=is_rejected
        )
        starts.append(start)
        has_head = ending == "kill" and launcher != "torchrun"
        gap = float(rng.uniform(2, 25)) if has_head else log_uniform(rng, 5, 4000)
        if len(workers) > 1 and rng.random() < 0.3:
            now = workers[: int(rng.integers(1, len(workers) + 1))]
    return tuple(starts)


def _pick_ending(rng: np.random.Generator, chances: tuple[float, float, float]) -> Ending:
    endings: tuple[Ending, ...] = ("finish", "stop", "kill")
    return endings[int(rng.choice(3, p=chances))]
