"""Draws what of a run is written down, what is lost, and how its clocks differ."""

import numpy as np
from benchmarks.truth.world.dice import log_uniform
from benchmarks.truth.world.world import Clocks, Cluster, Evidence

__all__ = ["draw_clocks", "draw_evidence"]

_MOST_SAMPLES = 500
"""Of a run, all hosts together."""


def draw_evidence(
    rng: np.random.Generator,
    cluster: Cluster,
    workers: tuple[int, ...],
    *,
    wall_s: float,
    has_evaluations: bool,
) -> Evidence:
    """Mostly whole, now and then with any of its parts missing."""
    ranks, hosts = sum(workers), len(workers)
    lost: tuple[int, ...] = ()
    cut: tuple[tuple[int, float], ...] = ()
    if ranks > 1 and rng.random() < 0.04:
        lost = (int(rng.integers(1, ranks)),)
    if rng.random() < 0.05:
        # The log of a whole host was not copied any more, or that of one rank.
        share, first = float(rng.uniform(0.2, 0.95)), int(rng.integers(ranks))
        of_host = np.repeat(np.arange(hosts), workers)
        same = np.flatnonzero(of_host == of_host[first]) if rng.random() < 0.5 else [first]
        cut = tuple((int(rank), share) for rank in same)
    gap = rng.uniform(0, 0.7)
    every = float(rng.choice([1.0, 1.0, 2.0, 5.0]))
    return Evidence(
        probe_every=int(rng.choice([500, 500, 250, 100, -1, 0], p=[0.3, 0.2, 0.1, 0.1, 0.12, 0.18])),
        sample_s=0.0 if rng.random() < 0.1 else max(every, 1.6 * wall_s * hosts / _MOST_SAMPLES),
        unsampled_hosts=(int(rng.integers(hosts)),) if rng.random() < 0.06 else (),
        sample_gap=(gap, gap + float(rng.uniform(0.05, 0.5))) if rng.random() < 0.06 else None,
        has_peak=bool(rng.random() < 0.9),
        has_flops=bool(rng.random() < 0.92),
        has_gradient_bytes=bool(rng.random() < 0.95),
        has_card=bool(rng.random() < 0.6),
        has_links=cluster.launcher == "hosts" and bool(rng.random() < 0.8),
        has_probe_loss=bool(rng.random() < 0.85),
        sentences=int(rng.choice([0, 20, 100, 500, 2000], p=[0.12, 0.05, 0.18, 0.3, 0.35]))
        if has_evaluations
        else 0,
        valid_tokens=int(log_uniform(rng, 2_000, 100_000)),
        lost_ranks=lost,
        cut_ranks=cut,
        torn_lines=int(rng.integers(1, 6)) if rng.random() < 0.06 else 0,
        doubled=(int(rng.integers(ranks)), int(rng.integers(5, 80))) if rng.random() < 0.04 else None,
        dropped=(int(rng.integers(1, ranks)), float(rng.uniform(0.1, 0.8)), int(rng.integers(3, 60)))
        if ranks > 1 and rng.random() < 0.04
        else None,
        has_recipe=bool(rng.random() < 0.9),
        ends_inside_line=bool(rng.random() < 0.05),
    )


def draw_clocks(rng: np.random.Generator, hosts: int) -> Clocks:
    """Clocks within milliseconds, seconds or minutes of each other."""
    spread = float(rng.choice([0.003, 0.05, 2.0, 200.0], p=[0.5, 0.25, 0.15, 0.1]))
    jump = None
    if rng.random() < 0.06:
        size = float(rng.choice([-1, 1])) * log_uniform(rng, 0.5, 300)
        jump = (int(rng.integers(hosts)), float(rng.uniform(0.1, 0.9)), size)
    return Clocks(
        offset_s=tuple(float(offset) for offset in spread * rng.standard_normal(hosts)),
        drift=tuple(float(drift) for drift in 2e-5 * rng.standard_normal(hosts)),
        jump=jump,
    )
