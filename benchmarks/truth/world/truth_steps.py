"""The truth about where steps spend their time: computing, network, and how long they are."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from benchmarks.truth.world.announce import peak_flops
from benchmarks.truth.world.history import Attempt, History
from benchmarks.truth.world.label import CANNOT_TELL, MEASURED, Expected, Label, by_borders
from benchmarks.truth.world.steady import Steady, incomplete_ranks, steady
from benchmarks.truth.world.timing import AS_IT_IS, Array

__all__ = ["label_gpus", "label_network", "label_step_network", "label_step_time"]

_VERDICTS = ("no", "partly", "yes")
_OFTEN = 0.25
"""Share of the steps in which ranks must wait for data for the loader's own time to show."""
_LONGEST = 6.0
"""Medians beyond which a step is rather a pause that happened to fall into one."""
_WARMING_STEPS = 10
_MANY = 20
"""Steps, for the hosts of a start to be what a question means."""
_MOST_CUT = 0.6
"""Share of the run up to which a log must go to count."""
_MISSING = "logs of ranks are missing"


def label_gpus(history: History) -> Label:
    """Were the GPUs fully used?"""
    return _of_any_steps(history, _label_gpus)


def label_network(history: History) -> Label:
    """Was the network the bottleneck?"""
    return _of_any_steps(history, _label_network)


def _of_any_steps(history: History, label: Callable[[History, Steady, list[Attempt]], Label]) -> Label:
    """Of the whole run or of its steps on the same hosts, with or without pauses in their midst: it may mean any."""
    whole = label(history, steady(history, history.attempts), history.attempts)
    for attempts in (history.attempts, *_by_layout(history)):
        other = label(history, steady(history, attempts, _LONGEST), attempts)
        if other.accepted != whole.accepted:
            whole = replace(
                whole,
                truth=f"{whole.truth}; or {other.truth}",
                accepted=whole.accepted | other.accepted,
                suffices=whole.suffices and other.suffices,
                reason=whole.reason or other.reason or "its steps are of two kinds",
            )
    if {"yes", "no"} <= whole.accepted:
        whole = replace(whole, accepted=whole.accepted | {"partly"})
    return whole


def _by_layout(history: History) -> list[list[Attempt]]:
    """The starts on the same hosts together, where many of their steps stand."""
    layouts = sorted({attempt.start.workers for attempt in history.attempts})
    groups = [
        [attempt for attempt in history.attempts if attempt.start.workers == layout] for layout in layouts
    ]
    return [group for group in groups if sum(history.standing(attempt).sum() for attempt in group) >= _MANY]


def _is_of_one_layout(history: History) -> bool:
    return len({attempt.start.workers for attempt in history.attempts}) == 1


def _label_gpus(history: History, means: Steady, attempts: list[Attempt]) -> Label:
    evidence, share = history.world.evidence, means.computing
    known = [share, means.computing_logged]
    if attempts[-1].start.ranks > 1 and not means.probes:
        known.append(means.computing_slowed)
    accepted, suffices, reason = frozenset[str](), True, ""
    for value in known:
        accepted |= by_borders(value, (0.75, 0.9), _VERDICTS, 0.015)
    if by_borders(known[0], (0.75, 0.9), _VERDICTS, 0.0) != by_borders(
        known[-1], (0.75, 0.9), _VERDICTS, 0.0
    ):
        suffices, reason = False, "no probes say what the exchange slows computing by"
    used = history.world.model.flops_per_token * means.tokens_per_s
    peak = peak_flops(history.world) * attempts[-1].start.ranks
    reached = used / peak
    if "yes" in accepted:
        if not (evidence.has_peak and evidence.has_flops):
            accepted, suffices, reason = accepted | {"partly", CANNOT_TELL}, False, "no peak"
        elif reached < 0.37:
            accepted = accepted - {"yes"} | {"partly"} if reached < 0.33 else accepted | {"partly"}
    if incomplete_ranks(history):
        accepted, suffices, reason = accepted | {CANNOT_TELL}, False, _MISSING
    if not suffices:
        accepted |= {CANNOT_TELL}
    return Label(
        truth=f"computing {share:.3f}, peak {reached:.2f}",
        accepted=accepted,
        suffices=suffices,
        reason=reason,
    )


def _label_network(history: History, means: Steady, attempts: list[Attempt]) -> Label:
    starts = [attempt.start for attempt in attempts]
    if all(start.ranks == 1 for start in starts):
        return Label(truth="no (one rank)", accepted=frozenset({"no"}), suffices=True)
    if all(len(start.workers) == 1 for start in starts):
        if history.world.evidence.lost_ranks:
            accepted = frozenset({"no", CANNOT_TELL})
            return Label(truth="no (one host)", accepted=accepted, suffices=False, reason=_MISSING)
        return Label(truth="no (one host)", accepted=frozenset({"no"}), suffices=True)
    share = means.saved
    margin = 0.012 + 0.05 * abs(share)
    accepted = by_borders(share, (0.1, 0.25), _VERDICTS, margin)
    suffices, reason = _allows_network(history, means, accepted)
    if abs(share - means.saved_if_fed) > 0.01 and means.starved < _OFTEN:
        fed = by_borders(means.saved_if_fed, (0.1, 0.25), _VERDICTS, margin)
        if fed != accepted:
            accepted, suffices, reason = accepted | fed, False, "a loader too slow for a faster network"
    if not suffices:
        accepted |= {CANNOT_TELL}
    numbers = (
        f"saved {share:.3f}, if fed {means.saved_if_fed:.3f}, waited {means.waited:.3f}, "
        f"on the link {means.on_link:.3f}, starved {means.starved:.2f}, probes {means.probes}"
    )
    return Label(truth=f"{_name(share)} ({numbers})", accepted=accepted, suffices=suffices, reason=reason)


def _name(share: float) -> str:
    return "no" if share < 0.1 else "partly" if share < 0.25 else "yes"


def _allows_network(history: History, means: Steady, accepted: frozenset[str]) -> tuple[bool, str]:
    world = history.world
    ranks = [rank for rank, share in world.evidence.cut_ranks if share < _MOST_CUT]
    if world.evidence.lost_ranks or ranks:
        return False, _MISSING
    by_wait = by_borders(means.waited, (0.1, 0.25), _VERDICTS, 0.0)
    if not means.probes:
        if by_wait <= accepted and (means.waited >= 0.1 or means.on_link < 0.1):
            return True, ""
        return False, "no probes"
    # What the probes add is known as well as they are alike.
    slowed = means.saved - means.waited
    spread = _probe_spread(history, means)
    nearest = min(abs(means.saved - 0.1), abs(means.saved - 0.25))
    if not by_wait <= accepted and nearest < 2 * spread:
        return False, f"{means.probes} probes tell it to {spread:.3f} of the step"
    if world.network.changes and slowed > nearest and world.evidence.probe_every <= 0:
        return False, "the network changed after the last probe"
    return True, ""


def _probe_spread(history: History, means: Steady) -> float:
    """Standard deviation of what the probes tell, as a share of the step."""
    return float(1.5 * history.world.compute.jitter * means.computing / np.sqrt(max(means.probes, 1)))


def label_step_time(history: History) -> Label:
    means = steady(history, history.attempts)
    late = _calm(history, means)
    # The last lines of a run that was killed are lost.
    slack = 0.06 if history.attempts[-1].is_killed else 0.01
    quantiles = np.percentile(means.durations, [46, 54, 93.5, 96.5])
    numbers = {
        "median": _between(quantiles[0], quantiles[1], slack),
        "mean": _between(means.durations.mean(), late.mean(), slack),
        "95th percentile": _between(quantiles[2], quantiles[3], 0.05),
    }
    if not _is_of_one_layout(history):
        numbers = {}
    return Label(
        truth=f"{np.median(means.durations):.4f} s", accepted=MEASURED, suffices=True, numbers=numbers
    )


def _calm(history: History, means: Steady) -> Array:
    """Durations of steps; those right after a start count only while they are not much longer than others."""
    usual, calm = float(np.median(means.durations)), []
    for attempt in history.attempts:
        durations = attempt.timing.durations[AS_IT_IS]
        is_late = np.arange(len(durations)) > _WARMING_STEPS
        calm.append(durations[history.standing(attempt) & (is_late | (durations < 1.5 * usual))])
    return np.concatenate(calm)


def _between(first: float, second: float, relative: float) -> Expected:
    """A number that is one of the two, or between them."""
    return Expected(
        value=float(first + second) / 2, relative=relative, absolute=abs(float(first - second)) / 2
    )


def label_step_network(history: History) -> Label:
    world, means = history.world, steady(history, history.attempts)
    step = float(means.durations.mean())
    is_whole = _is_of_one_layout(history) and not incomplete_ranks(history) and not world.evidence.dropped
    usual = float(steady(history, history.attempts, _LONGEST).durations.mean())
    # Slow steps right after a start are not counted by the definition of a step, nor is it wrong to count them.
    least, most = sorted([usual, step, float(_calm(history, means).mean())])[::2]
    usual, spread = least + most - step, (most - least) / 2
    numbers = {"step": Expected(value=(step + usual) / 2, relative=0.03, absolute=spread)} if is_whole else {}
    suffices, reason = True, ""
    layouts = {start.workers for start in world.starts}
    if world.most_ranks > 1 and not world.evidence.has_gradient_bytes:
        reason = "no bytes"
    elif len(layouts) == 1 and len(world.starts[0].workers) > 1:
        ranks = world.starts[0].ranks
        ring = 2 * (ranks - 1) / ranks * world.model.gradient_bytes
        numbers["bytes a step, predicted"] = Expected(value=ring, relative=0.01)
    if incomplete_ranks(history):
        suffices, reason = False, _MISSING
    accepted = MEASURED if suffices else MEASURED | {CANNOT_TELL}
    is_fed = means.starved < 0.05 and abs(means.saved - means.saved_if_fed) < 0.01
    if len(layouts) == 1 and suffices and means.probes >= 3 and not world.network.changes and is_fed:
        cost = means.saved_if_fed * step
        numbers["exchange"] = Expected(
            value=cost, relative=0.1, absolute=(0.04 + 2.5 * _probe_spread(history, means)) * step + spread
        )
    return Label(
        truth=f"exchange {means.saved_if_fed:.3f} of {step:.4f} s",
        accepted=accepted,
        suffices=suffices,
        reason=reason,
        numbers=numbers,
    )
