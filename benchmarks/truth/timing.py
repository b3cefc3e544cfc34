"""Where the time of a simulated run goes: steps with the network it has, and with one that takes no time."""

import math
from dataclasses import dataclass, replace

import numpy as np
from benchmarks.truth.scenario import Scenario
from numpy.typing import NDArray

__all__ = ["Probe", "Timing", "simulate_time"]

Numbers = NDArray[np.float64]
_FORWARD = 0.34
_FIRST_BUCKET = 0.12
"""Share of backward after which the first gradients can be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A step that was also done without exchange, a value a rank."""

    at: int
    synchronised_s: Numbers
    unsynchronised_s: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All steps as they were done, also those that were done again; a row a step, a column a rank."""

    end_s: Numbers
    """Of the step on each rank, since the first one began; pauses between steps are not in here."""
    data_s: Numbers
    forward_s: Numbers
    backward_s: Numbers
    exchange_s: Numbers
    optimizer_s: Numbers
    other_s: Numbers
    pure_s: Numbers
    """Forward and backward as they are without any exchange beside them."""
    sending_s: Numbers
    """How long the network took for the gradients of each step, hidden or not."""
    probes: tuple[Probe, ...]

    @property
    def duration_s(self) -> Numbers:
        """Of each step on each rank."""
        return (
            self.data_s + self.forward_s + self.backward_s + self.exchange_s + self.optimizer_s + self.other_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """The dice of a run, thrown once, so that both networks meet the same accidents."""

    compute_s: Numbers
    batch_s: Numbers
    optimizer_s: Numbers
    other_s: Numbers
    rate: Numbers
    probed: frozenset[int]
    probe_noise: Numbers


def simulate_time(scenario: Scenario, done: int, *, seed: int) -> tuple[Timing, Timing]:
    """Return `done` steps as they were, and as they would have been if sending took no time."""
    drawn = _draw(scenario, done, np.random.default_rng(seed))
    infinite = replace(
        scenario, link=replace(scenario.link, bits_per_s=math.inf, latency_s=0.0, slows_compute=0.0)
    )
    return _run(scenario, drawn), _run(infinite, drawn)


def _draw(scenario: Scenario, done: int, dice: np.random.Generator) -> _Drawn:
    work, ranks = scenario.work, scenario.hardware.ranks
    shape = (done, ranks)
    size = dice.normal(1.0, 0.03, (done, 1))
    compute = work.compute_s * size * np.exp(dice.normal(0, work.jitter, shape))
    compute *= 1 + (dice.random(shape) < work.tails / ranks) * dice.exponential(1.2, shape)
    compute *= 1 + work.drift * np.linspace(0, 1, done)[:, None]
    hot = np.arange(done) >= work.throttled_from * done
    compute = np.where(hot[:, None], compute * work.throttled_factor, compute)
    if work.slow_rank >= 0:
        compute[:, work.slow_rank] *= work.slow_factor
    guess_s = work.compute_s + scenario.reader.batch_s
    compute += (dice.random(shape) < guess_s / work.pause_every_s) * work.pause_s
    busy = (np.arange(done) * guess_s / scenario.link.background_s).astype(int) % 2 == 1
    rate = 1 - scenario.link.background * busy * dice.uniform(0.8, 1.0, done)
    probed = {20, 60, 180, *range(500, done, 500)} if scenario.seen.probes and ranks > 1 else set()
    batch = scenario.reader.batch_s * np.exp(dice.normal(0, scenario.reader.jitter, shape))
    if scenario.reader.slow_rank >= 0:
        batch[:, scenario.reader.slow_rank] *= scenario.reader.slow_factor
    return _Drawn(
        compute_s=compute,
        batch_s=batch,
        optimizer_s=work.optimizer_s * np.exp(dice.normal(0, 0.05, shape)),
        other_s=work.other_s * np.exp(dice.normal(0, 0.3, shape)),
        rate=rate * np.exp(-np.abs(dice.normal(0, 0.02, done))),
        probed=frozenset(probed),
        probe_noise=np.exp(dice.normal(0, work.jitter / 2, shape)),
    )


def _run(scenario: Scenario, drawn: _Drawn) -> Timing:
    done, ranks = drawn.compute_s.shape
    held = {name: np.zeros((done, ranks)) for name in ("end", "data", "forward", "backward", "exchange")}
    sending, now = np.zeros(done), np.zeros(ranks)
    ready = np.zeros(ranks)
    taken = np.zeros((scenario.reader.ahead, ranks))
    probes = []
    for at in range(done):
        if at in drawn.probed:
            now = np.full(ranks, now.max())
        ready = np.maximum(ready, taken[at % scenario.reader.ahead]) + drawn.batch_s[at]
        begin = np.maximum(now, ready)
        taken[at % scenario.reader.ahead] = begin
        data = begin - now + 0.0002
        if at in drawn.probed:
            begin = np.full(ranks, begin.max())
        forward, backward, exchange, sent = _pass(scenario, drawn.compute_s[at], begin, drawn.rate[at])
        held["data"][at] = data
        held["forward"][at], held["backward"][at], held["exchange"][at] = forward, backward, exchange
        sending[at] = sent
        if at in drawn.probed:
            probes.append(
                Probe(
                    at=at,
                    synchronised_s=forward + backward + exchange,
                    unsynchronised_s=drawn.compute_s[at] * drawn.probe_noise[at],
                )
            )
        now = begin + forward + backward + exchange + drawn.optimizer_s[at] + drawn.other_s[at]
        held["end"][at] = now
    return Timing(
        end_s=held["end"],
        data_s=held["data"],
        forward_s=held["forward"],
        backward_s=held["backward"],
        exchange_s=held["exchange"],
        optimizer_s=drawn.optimizer_s,
        other_s=drawn.other_s,
        pure_s=drawn.compute_s,
        sending_s=sending,
        probes=tuple(probes),
    )


def _pass(
    scenario: Scenario, compute_s: Numbers, begin: Numbers, rate: float
) -> tuple[Numbers, Numbers, Numbers, float]:
    """Forward, backward and exchange of each rank, and how long the network was at it."""
    ranks, link = len(compute_s), scenario.link
    forward, backward = _FORWARD * compute_s, (1 - _FORWARD) * compute_s
    if ranks == 1:
        return forward, backward, np.zeros(1), 0.0
    buckets = max(1, math.ceil(scenario.gradient_bytes / link.bucket_bytes))
    sending = buckets * 2 * (ranks - 1) * link.latency_s + scenario.ring_bytes * 8 / (
        link.efficiency * link.bits_per_s * rate
    )
    last = backward / scenario.work.batches
    beside = np.minimum(1.0, sending / ((1 - _FIRST_BUCKET) * last)) if buckets > 1 else np.zeros(ranks)
    backward = backward + last * link.slows_compute * beside
    own_end = begin + forward + backward
    first = (own_end - (1 - _FIRST_BUCKET) * last).max() if buckets > 1 else own_end.max()
    end = max(own_end.max() + sending / buckets, first + sending)
    return forward, backward, end - own_end, sending
