"""The steps of one start, simulated rank by rank: computing, loader, exchange and pauses, with replays beside it.

Three variants go side by side with the same random draws: the run as it is, the same with a network that takes no time,
and that with batches that are always there, too.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from benchmarks.truth.world.world import Stall, Start, World
from numpy.typing import NDArray

__all__ = ["AS_IT_IS", "NO_NETWORK", "NO_NETWORK_NO_LOADER", "Timing", "simulate_steps"]

Array: TypeAlias = NDArray[np.float64]

AS_IT_IS, NO_NETWORK, NO_NETWORK_NO_LOADER = range(3)
_VARIANTS = 3
_EARLY_PROBES = (20, 60, 180)
_HAND_OVER_S = 5e-5
"""What it takes to get a batch that is there."""
_WANDER_STEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds by step and rank (K, R) of one start, and what the replays say."""

    first_step: int
    begin: Array
    data: Array
    rehearsal: Array
    forward: Array
    backward: Array
    exchange: Array
    optimizer: Array
    other: Array
    end: Array
    own: Array
    """Forward and backward without what the exchange slows them."""
    transfer: Array
    """When gradients are on the links: (K, 2), from and to."""
    transfer_bytes: float
    """That each host's link carries in each direction in a step; 0 where one host has all ranks."""
    retransmitted: NDArray[np.int64]
    durations: Array
    """Of rank 0's steps, by variant: (3, K)."""
    probed: NDArray[np.bool_]
    synchronised: Array
    unsynchronised: Array
    is_first: NDArray[np.bool_]
    """Steps that take more because they come first."""

    @property
    def duration(self) -> Array:
        """Of the steps, by rank."""
        return self.data + self.forward + self.backward + self.exchange + self.optimizer + self.other


@dataclass(slots=True, kw_only=True)
class _Draws:
    """All that is random, by step and rank."""

    forward: Array
    backward: Array
    optimizer: Array
    other: Array
    rehearsal: Array
    build: Array
    comm: Array
    retransmitted: NDArray[np.int64]
    clock_stalls: list[tuple[Stall, NDArray[np.bool_]]]


def simulate_steps(
    world: World, start: Start, *, first_step: int, begin_s: float, pauses: Array, rng: np.random.Generator
) -> Timing:
    """Simulate from `first_step` to the start's last; `pauses` has the seconds after each step."""
    steps = np.arange(first_step, start.last_step + 1)
    draws = _draw(world, start, steps, rng)
    ranks = start.ranks
    probed = _probed(world, steps) if ranks > 1 else np.zeros(len(steps), bool)
    out = {
        name: np.zeros((len(steps), ranks))
        for name in ("begin", "data", "rehearsal", "stretch", "exchange", "extra", "base")
    }
    transfer, durations = np.zeros((len(steps), 2)), np.zeros((_VARIANTS, len(steps)))
    has_network, slowing = np.array([1.0, 0.0, 0.0]), world.network.slowing
    loads = np.array([[1.0], [1.0], [0.0]])
    free = np.full((_VARIANTS, ranks), begin_s)
    ready, depth = np.full((_VARIANTS, ranks), begin_s - 0.2), world.loader.depth
    taken_at = np.full((depth, _VARIANTS, ranks), begin_s - 0.2)
    compute, tail = draws.forward + draws.backward, draws.optimizer + draws.other
    lead = draws.forward + world.network.first_bucket * draws.backward
    due = [begin_s + stall.every_s for stall, _ in draws.clock_stalls]
    buckets = world.network.buckets
    for k in range(len(steps)):
        begin = free
        ready = np.maximum(ready, taken_at[k % depth]) + draws.build[k] * loads
        taken = np.maximum(begin, ready) + _HAND_OVER_S
        taken_at[k % depth] = taken
        base = taken
        if probed[k]:
            base = np.repeat(
                taken.max(axis=1, keepdims=True) + draws.rehearsal[k].max() + 1e-4, ranks, axis=1
            )
        front, end = base + lead[k], base + compute[k]
        for number, (stall, mask) in enumerate(draws.clock_stalls):
            began_s = float(begin[AS_IT_IS, 0])
            if began_s >= due[number]:
                # At the same steps of every replay: that fewer accidents fall into a shorter step no log can tell.
                late = stall.seconds * mask
                front, end = front + late, end + late
                out["extra"][k] += late
                due[number] = began_s + stall.every_s
        comm = has_network * draws.comm[k]
        gate = front.max(axis=1)
        stretch = np.minimum(np.maximum(end - gate[:, None], 0.0), comm[:, None]) * slowing
        end = end + stretch
        finish = np.maximum(gate + comm, end.max(axis=1) + comm / buckets)
        free = finish[:, None] + tail[k]
        durations[:, k] = (free - begin - (base - taken))[:, 0]
        out["begin"][k], out["data"][k], out["rehearsal"][k] = begin[0], (taken - begin)[0], (base - taken)[0]
        out["stretch"][k], out["exchange"][k], out["base"][k] = stretch[0], finish[0] - end[0], base[0]
        transfer[k] = gate[0], max(finish[0], gate[0] + 1e-6)
        if pauses[k]:
            free = np.repeat(free.max(axis=1, keepdims=True) + pauses[k], ranks, axis=1)
    forward, backward = draws.forward + out["extra"], draws.backward + out["stretch"]
    return Timing(
        first_step=first_step,
        begin=out["begin"],
        data=out["data"],
        rehearsal=out["rehearsal"],
        forward=forward,
        backward=backward,
        exchange=out["exchange"] + 1e-5,
        optimizer=draws.optimizer,
        other=np.maximum(draws.other - 1e-5, 0.0),
        end=out["base"] + forward + backward + out["exchange"] + tail,
        own=forward + draws.backward,
        transfer=transfer,
        transfer_bytes=ring_bytes(world, start) if len(start.workers) > 1 else 0.0,
        retransmitted=draws.retransmitted,
        durations=durations,
        probed=probed,
        synchronised=forward + backward + out["exchange"],
        unsynchronised=draws.rehearsal,
        is_first=steps == first_step,
    )


def ring_bytes(world: World, start: Start) -> float:
    """What a ring of all ranks sends over a link in a step, in each direction."""
    return 2 * (start.ranks - 1) / start.ranks * world.model.gradient_bytes


def _probed(world: World, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
    every = world.evidence.probe_every
    early: NDArray[np.bool_] = np.isin(steps, _EARLY_PROBES)
    if every == 0:
        return np.zeros(len(steps), bool)
    return early if every < 0 else early | (steps % every == 0)


def _draw(world: World, start: Start, steps: NDArray[np.int64], rng: np.random.Generator) -> _Draws:
    compute, shape = world.compute, (len(steps), start.ranks)
    batch = np.maximum(1 + compute.batch_spread * rng.standard_normal(len(steps)), 0.3)[:, None]
    share = np.maximum(1 + compute.imbalance * rng.standard_normal(shape), 0.3)
    # An update is as large whoever shares it.
    own_s = compute.step_s * world.starts[0].ranks / start.ranks
    speed = _slowness(world, start, steps, rng) * batch * share * own_s
    backward = speed * compute.backward_share * _noise(rng, compute.jitter, shape)
    forward = speed * (1 - compute.backward_share) * _noise(rng, compute.jitter, shape)
    rehearsal = speed * _noise(rng, compute.jitter, shape)
    stalls, clock_stalls = _stalls(world, start, steps, rng)
    in_backward = rng.random(len(steps))[:, None] < 0.5
    first = (steps == steps[0])[:, None] * compute.first_step_s * (0.9 + 0.2 * rng.random(start.ranks))
    optimizer = compute.step_s * compute.optimizer_share * _noise(rng, compute.jitter, shape)
    other = compute.step_s * compute.other_share * _noise(rng, 0.2, shape)
    comm, retransmitted = _transfers(world, start, steps, rng)
    return _Draws(
        forward=forward + stalls * ~in_backward + first,
        backward=backward + stalls * in_backward,
        optimizer=optimizer,
        other=other,
        rehearsal=rehearsal,
        build=_builds(world, start, steps, rng) * batch,
        comm=comm,
        retransmitted=retransmitted,
        clock_stalls=clock_stalls,
    )


def _noise(rng: np.random.Generator, spread: float, shape: tuple[int, ...]) -> Array:
    """Factors with a long tail above and mean one."""
    return np.exp(spread * rng.standard_normal(shape) - spread**2 / 2)


def host_of_rank(workers: tuple[int, ...]) -> NDArray[np.int64]:
    """The number of each rank's host."""
    return np.repeat(np.arange(len(workers)), workers)


def _slowness(world: World, start: Start, steps: NDArray[np.int64], rng: np.random.Generator) -> Array:
    compute, hosts = world.compute, host_of_rank(start.workers)
    factor = np.ones((len(steps), start.ranks))
    for rank, times in compute.slow_ranks:
        if rank < start.ranks:
            factor[:, rank] *= times
    for host, times in compute.slow_hosts:
        factor[:, hosts == host] *= times
    if compute.heat is not None:
        host, times, share = compute.heat
        age = np.maximum(steps / world.steps - share, 0.0)
        factor[:, hosts == host] *= (1 + (times - 1) * (1 - np.exp(-age * 12)))[:, None]
    if compute.wander:
        blocks = len(steps) // _WANDER_STEPS + 1
        slow = np.cumsum(rng.standard_normal((blocks, len(start.workers))), axis=0) * 0.3
        slow -= slow.mean(axis=0)
        by_host = np.repeat(1 + compute.wander * np.clip(slow, -2, 2), _WANDER_STEPS, axis=0)[: len(steps)]
        factor *= by_host[:, hosts]
    return factor


def _stalls(
    world: World, start: Start, steps: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Array, list[tuple[Stall, NDArray[np.bool_]]]]:
    """Stalls that come by the step, in seconds, and those that come by the clock."""
    total, by_clock = np.zeros((len(steps), start.ranks)), []
    hosts = host_of_rank(start.workers)
    for stall in world.compute.stalls:
        numbers = {"rank": np.arange(start.ranks), "host": hosts, "all": np.full(start.ranks, stall.number)}
        mask = numbers[stall.scope] == stall.number
        if stall.every_s:
            by_clock.append((stall, mask))
            continue
        hit = rng.random(len(steps)) < stall.chance
        if stall.every_steps:
            hit = steps % stall.every_steps == 0
        length = stall.seconds * (rng.gamma(4.0, 0.25, len(steps)) if not stall.every_steps else 1.0)
        total += np.outer(hit * length, mask)
    return total, by_clock


def _transfers(
    world: World, start: Start, steps: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Array, NDArray[np.int64]]:
    """Seconds that gradients are under way in each step, and segments that are sent again."""
    network, count = world.network, len(steps)
    jitter, stalled, lost = rng.standard_normal(count), rng.random(count), rng.random(count)
    lengths = rng.gamma(4.0, 0.25, (2, count))
    if start.ranks == 1:
        return np.zeros(count), np.zeros(count, np.int64)
    sent = ring_bytes(world, start)
    hops = 2 * (start.ranks - 1)
    noise = np.exp(network.jitter * jitter - network.jitter**2 / 2)
    if len(start.workers) == 1:
        return noise * sent / network.internal_bytes_per_s + hops * 2e-5, np.zeros(count, np.int64)
    factor = np.ones(count)
    for share, times in network.changes:
        factor[steps > share * world.steps] = times
    slowest = min(network.bytes_per_s[: len(start.workers)])
    seconds = noise * sent / (slowest * factor) + hops * network.buckets * network.latency_s
    seconds += (stalled < network.stall_chance) * network.stall_s * lengths[0]
    is_lost = lost < network.loss_chance
    seconds += is_lost * network.timeout_s * lengths[1]
    return seconds, np.where(is_lost, rng.integers(3, 60, count), 0)


def _builds(world: World, start: Start, steps: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Seconds in which the loader of each rank makes each update."""
    loader, shape = world.loader, (len(steps), start.ranks)
    build = loader.build_s * world.starts[0].ranks / start.ranks * _noise(rng, loader.spread, shape)
    if 0 <= loader.slow_rank < start.ranks:
        build[:, loader.slow_rank] *= loader.slow_factor
    build += (rng.random(shape) < loader.stall_chance) * loader.stall_s * rng.gamma(4.0, 0.25, shape)
    is_new = (steps - 1) % world.training.updates_per_epoch == 0
    build += is_new[:, None] * loader.epoch_s
    return build
