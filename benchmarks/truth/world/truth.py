"""The truth about a run that was played: the acceptable answers to the eleven questions, and the numbers behind them.

A label accepts the verdict that the documented borders give, near a border those of both sides, and `cannot tell` where
what was withheld from the log makes it so.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from benchmarks.truth.world.announce import checkpoint_files, peak_flops
from benchmarks.truth.world.card import build_card
from benchmarks.truth.world.history import Attempt, History
from benchmarks.truth.world.label import ANYTHING, CANNOT_TELL, Expected, Label, by_borders
from benchmarks.truth.world.timing import AS_IT_IS, NO_NETWORK, NO_NETWORK_NO_LOADER, Array
from benchmarks.truth.world.truth_learning import label_overfitting, label_trained

__all__ = ["Steady", "label_run", "steady"]

_MEASURED = frozenset({"measured"})
_NETWORK = ("no", "partly", "yes")
_GPUS = ("no", "partly", "yes")
_CPU_OFTEN = 0.25
_LONGEST = 6.0
"""Medians beyond which a step is rather a pause that happened to fall into one."""
_WARMING_STEPS = 10
_MOST_CUT = 0.6
"""Share of the run up to which a log must go to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Means over the steps that stand, without the first after each start."""

    saved: float
    """Share of the time of steps that a network without time would save, with the same accidents."""
    saved_if_fed: float
    """The same where batches would still be there in time."""
    waited: float
    """Share in which the last rank to arrive waits."""
    on_link: float
    """Share in which gradients are under way."""
    starved: float
    """Share of the steps in which some rank waits for data."""
    computing: float
    """Share of the mean rank's own computing."""
    computing_slowed: float
    """The same with what the exchange slows it."""
    computing_logged: float
    """Of the ranks whose logs are there."""
    tokens_per_s: float
    durations: Array
    """Of rank 0."""
    probes: int
    lasting_s: float


def steady(history: History, attempts: list[Attempt], longest: float = inf) -> Steady:
    """Add up the steps of some of the starts that are not longer than so many medians."""
    parts = [(attempt.timing, history.standing(attempt) & ~attempt.timing.is_first) for attempt in attempts]
    if longest < inf:
        usual = float(np.median(np.concatenate([timing.durations[AS_IT_IS, mask] for timing, mask in parts])))
        parts = [(timing, mask & (timing.durations[AS_IT_IS] <= longest * usual)) for timing, mask in parts]
    durations = np.concatenate([timing.durations[:, mask] for timing, mask in parts], axis=1)
    total = durations.sum(axis=1)
    firsts = [attempt.first_step for attempt in attempts]
    waited = sum(float(timing.exchange[mask].min(axis=1).sum()) for timing, mask in parts)
    transfer = sum(
        float((timing.transfer[mask, 1] - timing.transfer[mask, 0]).sum())
        for timing, mask in parts
        if timing.data.shape[1] > 1
    )
    data = sum(float(timing.data[mask].mean(axis=1).sum()) for timing, mask in parts)
    all_s = sum(float(timing.duration[mask].mean(axis=1).sum()) for timing, mask in parts)
    own = sum(float((timing.own + timing.optimizer)[mask].mean(axis=1).sum()) for timing, mask in parts)
    slowed = sum(
        float((timing.forward + timing.backward + timing.optimizer)[mask].mean(axis=1).sum())
        for timing, mask in parts
    )
    logged_own, logged_all = 0.0, 0.0
    for timing, mask in parts:
        there = [rank for rank in range(timing.data.shape[1]) if rank not in _incomplete(history)]
        logged_own += float((timing.own + timing.optimizer)[mask][:, there].mean(axis=1).sum())
        logged_all += float(timing.duration[mask][:, there].mean(axis=1).sum())
    starved = np.concatenate(
        [(timing.data[mask] > 0.02 * timing.duration[mask]).any(axis=1) for timing, mask in parts]
    )
    tokens = sum(
        int(history.tokens[np.arange(first, first + len(mask))[mask] - 1].sum())
        for first, (_, mask) in zip(firsts, parts, strict=True)
    )
    return Steady(
        saved=float(1 - total[NO_NETWORK] / total[AS_IT_IS]),
        saved_if_fed=float(1 - (total[NO_NETWORK_NO_LOADER] + data) / total[AS_IT_IS]),
        waited=waited / all_s,
        on_link=transfer / all_s,
        starved=float(starved.mean()),
        computing=own / all_s,
        computing_slowed=slowed / all_s,
        computing_logged=logged_own / logged_all,
        tokens_per_s=tokens / all_s,
        durations=durations[AS_IT_IS],
        probes=sum(int((timing.probed & mask).sum()) for timing, mask in parts),
        lasting_s=all_s,
    )


def _incomplete(history: History) -> set[int]:
    """Ranks whose logs are missing, or end early."""
    evidence = history.world.evidence
    return {*evidence.lost_ranks, *(rank for rank, _ in evidence.cut_ranks)} - {0}


def label_run(history: History) -> dict[str, Label]:
    """The labels of all questions, by their keys."""
    means = steady(history, history.attempts)
    labels = {
        "duration": _label_duration(history, means),
        "trained": label_trained(history),
        "overfitting": label_overfitting(history),
        "gpus": _of_any_steps(history, _label_gpus),
        "network": _of_any_steps(history, _label_network),
        "schedule": _label_schedule(history),
        "data": _label_data(history),
        "checkpoint_files": _label_files(history),
        "checkpoint_size": _label_size(history),
        "step_time": _label_step_time(history, means),
        "step_network": _label_step_network(history, means),
    }
    if any(rank == 0 for rank, _ in history.world.evidence.cut_ranks):
        # What the first rank said later nobody knows: the run that is seen is another one.
        return {
            key: replace(
                label,
                accepted=ANYTHING,
                suffices=False,
                reason="the first rank's log ends early",
                numbers={},
                words="",
            )
            for key, label in labels.items()
        }
    return labels


def _of_any_steps(history: History, label: Callable[[History, Steady, list[Attempt]], Label]) -> Label:
    """Of the whole run, with or without pauses in the midst of steps, and of the last hosts: questions may mean any."""
    whole = label(history, steady(history, history.attempts), history.attempts)
    last = [
        attempt for attempt in history.attempts if attempt.start.workers == history.attempts[-1].start.workers
    ]
    for attempts in (history.attempts, last):
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


def _is_of_one_layout(history: History) -> bool:
    return len({attempt.start.workers for attempt in history.attempts}) == 1


def _label_duration(history: History, means: Steady) -> Label:
    spent, wall = history.spent, history.wall_s
    # A start ends when its sampler does, and samples come every so often; the line of a killed rank may be lost.
    slack = 1.5 + (history.world.evidence.sample_s if history.attempts[-1].is_killed else 0.0)
    slack += float(means.durations.mean()) * 2 if history.attempts[-1].is_killed else 0.0
    usual = float(np.median(means.durations))
    extras = sum(
        float(np.maximum(attempt.timing.duration[:11, 0] - usual, usual).sum())
        for attempt in history.attempts
    )
    again = 0.0
    # What was evaluated and saved again may count as lost.
    if history.world.evidence.torn_lines:
        again += history.world.evidence.torn_lines * max(
            (item.duration_s for item in history.evaluations.values()), default=0.0
        )
    redone = [attempt for attempt in history.attempts if not history.standing(attempt).all()]
    again += sum(
        item.duration_s
        for attempt in redone
        for item in attempt.evaluations
        if not history.stands(attempt, item.step)
    )
    again += sum(
        item.blocked_s
        for attempt in redone
        for item in attempt.checkpoints
        if not history.stands(attempt, item.step)
    )
    numbers = {
        "wall time": Expected(value=wall, relative=0.01, absolute=slack),
        "training": Expected(value=spent["steps"], relative=0.02, absolute=extras + 1.0),
        "evaluation": Expected(value=spent["evaluation"], relative=0.02, absolute=1.0 + again),
        "waiting for checkpoints": Expected(value=spent["checkpoints"], relative=0.02, absolute=1.0 + again),
        "data preparation": Expected(value=spent["preparation"], relative=0.02, absolute=1.0),
        "stopped": Expected(
            value=spent["stopped"],
            relative=0.05,
            absolute=(3.0 + 1.2 * history.world.pauses.launch_s) * len(history.attempts),
        ),
    }
    clocks = history.world.clocks
    if clocks.jump is not None:
        numbers = {name: number for name, number in numbers.items() if name not in {"wall time", "stopped"}}
    if history.world.cluster.launcher == "torchrun" and any(
        attempt.is_killed for attempt in history.attempts
    ):
        # Nobody is left who could say that it was a loss.
        numbers.pop("stopped", None)
    return Label(truth=f"{wall:.1f} s", accepted=_MEASURED, suffices=True, numbers=numbers)


def _label_gpus(history: History, means: Steady, attempts: list[Attempt]) -> Label:
    evidence, share = history.world.evidence, means.computing
    known = [share, means.computing_logged]
    if attempts[-1].start.ranks > 1 and not means.probes:
        known.append(means.computing_slowed)
    accepted, suffices, reason = frozenset[str](), True, ""
    for value in known:
        accepted |= by_borders(value, (0.75, 0.9), _GPUS, 0.015)
    if by_borders(known[0], (0.75, 0.9), _GPUS, 0.0) != by_borders(known[-1], (0.75, 0.9), _GPUS, 0.0):
        suffices, reason = False, "no probes say what the exchange slows computing by"
    used = history.world.model.flops_per_token * means.tokens_per_s
    peak = peak_flops(history.world) * attempts[-1].start.ranks
    reached = used / peak
    if "yes" in accepted:
        if not (evidence.has_peak and evidence.has_flops):
            accepted, suffices, reason = accepted | {"partly", CANNOT_TELL}, False, "no peak"
        elif reached < 0.37:
            accepted = accepted - {"yes"} | {"partly"} if reached < 0.33 else accepted | {"partly"}
    if _incomplete(history):
        accepted, suffices, reason = accepted | {CANNOT_TELL}, False, "logs of ranks are missing"
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
        return Label(truth="no (one host)", accepted=frozenset({"no"}), suffices=True)
    share = means.saved
    margin = 0.012 + 0.05 * abs(share)
    accepted = by_borders(share, (0.1, 0.25), _NETWORK, margin)
    suffices, reason = _allows_network(history, means, accepted)
    if abs(share - means.saved_if_fed) > 0.01 and means.starved < _CPU_OFTEN:
        fed = by_borders(means.saved_if_fed, (0.1, 0.25), _NETWORK, margin)
        if fed != accepted:
            accepted, suffices, reason = (
                accepted | fed,
                False,
                "a loader that would be too slow behind a faster network",
            )
    if not suffices:
        accepted |= {CANNOT_TELL}
    numbers = f"saved {share:.3f}, waited {means.waited:.3f}, on the link {means.on_link:.3f}, if fed {means.saved_if_fed:.3f}, starved {means.starved:.2f}, probes {means.probes}"
    return Label(truth=f"{_name(share)} ({numbers})", accepted=accepted, suffices=suffices, reason=reason)


def _name(share: float) -> str:
    return "no" if share < 0.1 else "partly" if share < 0.25 else "yes"


def _allows_network(history: History, means: Steady, accepted: frozenset[str]) -> tuple[bool, str]:
    world = history.world
    ranks = [rank for rank, share in world.evidence.cut_ranks if share < _MOST_CUT]
    if world.evidence.lost_ranks or ranks:
        return False, "logs of ranks are missing"
    by_wait = by_borders(means.waited, (0.1, 0.25), _NETWORK, 0.0)
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


def _label_schedule(history: History) -> Label:
    world, rates = history.world, history.curves.learning_rate
    # The last steps of a run that was killed are not in its log.
    relative = 0.05 if history.attempts[-1].is_killed else 0.01
    numbers = {"highest rate as run": Expected(value=float(rates.max()), relative=relative)}
    if world.training.deviation is None:
        numbers["largest difference from the plan"] = Expected(value=0.0, absolute=0.01)
    return Label(
        truth=world.training.schedule,
        accepted=_MEASURED,
        suffices=True,
        numbers=numbers,
        words=world.training.schedule,
    )


def _label_data(history: History) -> Label:
    world = history.world
    numbers = {"pairs": Expected(value=world.training.pairs)}
    if world.pauses.prepare_s and world.evidence.has_card:
        card = build_card(world)
        numbers = {
            "clean pairs": Expected(value=card.stored.pairs),
            "raw pairs": Expected(value=card.raw.lines),
            "raw files": Expected(value=card.raw.bytes),
            "shards": Expected(value=card.stored.bytes),
            "tokens": Expected(value=card.tokens.source + card.tokens.target),
        }
    return Label(truth=f"{world.training.pairs} pairs", accepted=_MEASURED, suffices=True, numbers=numbers)


def _label_files(history: History) -> Label:
    written = [item.step for attempt in history.attempts for item in attempt.checkpoints]
    accepted = _MEASURED if written else frozenset({CANNOT_TELL, "measured"})
    numbers = (
        {"kept": Expected(value=len(history.kept_steps))}
        if written and not history.world.evidence.torn_lines
        else {}
    )
    return Label(
        truth=f"{len(written)} written, {len(history.kept_steps)} kept",
        accepted=accepted,
        suffices=bool(written),
        numbers=numbers,
    )


def _label_size(history: History) -> Label:
    if not any(attempt.checkpoints for attempt in history.attempts):
        return Label(
            truth="none", accepted=frozenset({CANNOT_TELL}), suffices=False, reason="none was written"
        )
    files = checkpoint_files(history.world)
    numbers = {"checkpoint": Expected(value=sum(files.values()))}
    return Label(truth=f"{sum(files.values())} bytes", accepted=_MEASURED, suffices=True, numbers=numbers)


def _label_step_time(history: History, means: Steady) -> Label:
    # The steps right after a start count only while they are not much longer than others.
    usual, calm = float(np.median(means.durations)), []
    for attempt in history.attempts:
        durations = attempt.timing.durations[AS_IT_IS]
        is_late = np.arange(len(durations)) > _WARMING_STEPS
        calm.append(durations[history.standing(attempt) & (is_late | (durations < 1.5 * usual))])
    late = np.concatenate(calm)
    numbers = {
        "median": _between(np.median(means.durations), np.median(late), 0.01),
        "mean": _between(means.durations.mean(), late.mean(), 0.01),
        "95th percentile": _between(np.percentile(means.durations, 95), np.percentile(late, 95), 0.05),
    }
    if not _is_of_one_layout(history):
        numbers = {}
    return Label(
        truth=f"{np.median(means.durations):.4f} s", accepted=_MEASURED, suffices=True, numbers=numbers
    )


def _between(first: float, second: float, relative: float) -> Expected:
    """A number that is one of the two, or between them."""
    return Expected(
        value=float(first + second) / 2, relative=relative, absolute=abs(float(first - second)) / 2
    )


def _label_step_network(history: History, means: Steady) -> Label:
    world = history.world
    step = float(means.durations.mean())
    is_whole = _is_of_one_layout(history) and not _incomplete(history)
    usual = float(steady(history, history.attempts, _LONGEST).durations.mean())
    spread = abs(step - usual) / 2
    numbers = {"step": Expected(value=(step + usual) / 2, relative=0.03, absolute=spread)} if is_whole else {}
    suffices, reason = True, ""
    layouts = {start.workers for start in world.starts}
    if world.most_ranks > 1 and not world.evidence.has_gradient_bytes:
        reason = "no bytes"
    elif len(layouts) == 1 and len(world.starts[0].workers) > 1:
        ranks = world.starts[0].ranks
        ring = 2 * (ranks - 1) / ranks * world.model.gradient_bytes
        numbers["bytes a step, predicted"] = Expected(value=ring, relative=0.01)
    if _incomplete(history):
        suffices, reason = False, "logs of ranks are missing"
    accepted = _MEASURED if suffices else _MEASURED | {CANNOT_TELL}
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
