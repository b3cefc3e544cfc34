"""Steps of a recipe on the hosts as they were measured: alone, and together in each mode of exchanging gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.estimate.exchange import MOST_EXPOSED, NUMBER_BYTES, codec_seconds, exposed_seconds, host_bytes
from tandem.estimate.larger_update import LargerUpdate
from tandem.launch.doctor.examination import Examination
from tandem.launch.doctor.facts import HostFacts, SumFacts
from tandem.launch.doctor.needs import Needs

__all__ = ["HIDING", "MODEL_SPEED", "PredictedStep", "PredictedSteps", "predict_steps"]

MODEL_SPEED = 0.5
"""Of the speed of a large product, what training reaches: on an H200 base reaches 0.51 and big 0.66."""
HIDING = 2 / 3
"""Of computing, what can hide an exchange: backward, while gradients become complete."""
_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """A step in one mode."""

    mode: str
    step_s: float
    exposed_s: float
    """Of that the exchange that computing does not hide, and encoding where it takes the model's processor."""
    sent_bytes: float
    """By each host."""
    tokens_per_s: float

    @property
    def share(self) -> float:
        """The part of the step that is exposed exchange."""
        return self.exposed_s / self.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedSteps:
    """What the hosts would make of a recipe."""

    hosts: tuple[str, ...]
    ranks: int
    fastest: str
    """The host that is fastest alone."""
    alone_s: float
    """Its step alone, with no exchange counted between its ranks."""
    compute_s: float
    """Of a step together: what the slowest rank computes."""
    flops_per_s: float
    """Of the slowest rank in plain products."""
    link_bytes_per_s: float
    """At which gradients were summed."""
    modes: tuple[PredictedStep, ...]
    """The most exact one first."""
    larger: LargerUpdate | None
    """In the fastest mode, where its exchange shows and more text makes the hosts faster than one alone."""


def predict_steps(examination: Examination) -> PredictedSteps | None:
    """Predict from the speeds of processors and of a sum; None where one of them was not measured, or has no batch."""
    needs, sums = examination.needs, examination.sums
    if sums is None or not sums.summed_bytes or sums.problem or not needs.step_flops:
        return None
    members = [host for host in examination.hosts if host.name in sums.hosts]
    speeds = _rank_speeds(members, needs)
    if len(speeds) < 2 or not min(speeds.values()):
        return None
    alone = {host.name: needs.step_flops / host.ranks / (MODEL_SPEED * speeds[host.name]) for host in members}
    fastest = min(alone, key=lambda name: alone[name])
    together = _Together(needs, sums, ranks=[host.ranks for host in members], speed=min(speeds.values()))
    modes = tuple(together.step(mode) for mode in NUMBER_BYTES)
    best = min(modes, key=lambda step: step.step_s)
    larger = LargerUpdate.choose(
        lambda times: ((step := together.step(best.mode, times)).step_s, step.exposed_s),
        tokens=needs.update_tokens,
    )
    return PredictedSteps(
        hosts=sums.hosts,
        ranks=together.ranks,
        fastest=fastest,
        alone_s=alone[fastest],
        compute_s=together.compute_s(1),
        flops_per_s=min(speeds.values()),
        link_bytes_per_s=sums.bus_bytes_per_s,
        modes=modes,
        larger=larger
        if larger.before > MOST_EXPOSED and larger.gain * alone[fastest] > best.step_s
        else None,
    )


class _Together:
    """All hosts, with as many tokens for each rank."""

    def __init__(self, needs: Needs, sums: SumFacts, *, ranks: Sequence[int], speed: float) -> None:
        self._needs, self._sums = needs, sums
        self.ranks, self._shares = sum(ranks), min(ranks)
        self._rank_flops_per_s = MODEL_SPEED * speed

    def compute_s(self, times: int) -> float:
        return times * self._needs.step_flops / self.ranks / self._rank_flops_per_s

    def step(self, mode: str, times: int = 1) -> PredictedStep:
        """A step of an update of so many times the recipe's tokens."""
        needs, hosts = self._needs, len(self._sums.hosts)
        parameters = needs.gradient_bytes / _NUMBER_BYTES
        sent = host_bytes(mode, parameters, hosts=hosts, ranks=self.ranks)
        codec_s = codec_seconds(mode, parameters, hosts=hosts, shares=self._shares)
        compute_s = self.compute_s(times)
        exposed_s = exposed_seconds(
            sent / self._sums.bus_bytes_per_s, hiding_s=HIDING * compute_s, tail_share=needs.tail_share
        )
        exposed_s += codec_s if self._sums.device == "cpu" else 0.0
        step_s = compute_s + exposed_s
        return PredictedStep(
            mode=mode,
            step_s=step_s,
            exposed_s=exposed_s,
            sent_bytes=sent,
            tokens_per_s=times * needs.update_tokens / step_s,
        )


def _rank_speeds(members: Sequence[HostFacts], needs: Needs) -> dict[str, float]:
    """Operations a second of each host's slowest rank in plain products; empty where one host's are not known."""
    speeds: dict[str, float] = {}
    for host in members:
        machine = host.machine
        if machine is None:
            return {}
        if machine.gpu_flops_per_s and needs.is_half:
            speeds[host.name] = min(machine.gpu_flops_per_s)
        elif not machine.gpus:
            speeds[host.name] = machine.cpu_flops_per_s / host.ranks
        else:
            return {}
    return speeds
