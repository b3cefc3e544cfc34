"""The truth about a run that was played: the acceptable answers to the eleven questions, and the numbers behind them.

A label accepts the verdict that the documented borders give, near a border those of both sides, and `cannot tell` where
what was withheld from the log makes it so.
"""

from dataclasses import replace
from itertools import zip_longest

import numpy as np
from benchmarks.truth.world.announce import checkpoint_files
from benchmarks.truth.world.card import build_card
from benchmarks.truth.world.history import History
from benchmarks.truth.world.label import ANYTHING, CANNOT_TELL, MEASURED, Expected, Label
from benchmarks.truth.world.steady import steady
from benchmarks.truth.world.truth_learning import label_overfitting, label_trained
from benchmarks.truth.world.truth_steps import label_gpus, label_network, label_step_network, label_step_time

__all__ = ["label_run"]


def label_run(history: History) -> dict[str, Label]:
    """The labels of all questions, by their keys."""
    labels = {
        "duration": _label_duration(history),
        "trained": label_trained(history),
        "overfitting": label_overfitting(history),
        "gpus": label_gpus(history),
        "network": label_network(history),
        "schedule": _label_schedule(history),
        "data": _label_data(history),
        "checkpoint_files": _label_files(history),
        "checkpoint_size": _label_size(history),
        "step_time": label_step_time(history),
        "step_network": label_step_network(history),
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


def _label_duration(history: History) -> Label:
    spent, wall = history.spent, history.wall_s
    means = steady(history, history.attempts)
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
    if _is_set_unseen(history):
        # A host whose clock is set while nothing of the run works leaves the same log as one that slept meanwhile.
        numbers = {name: number for name, number in numbers.items() if name not in {"wall time", "stopped"}}
    if history.world.cluster.launcher == "torchrun" and any(
        attempt.is_killed for attempt in history.attempts
    ):
        # Nobody is left who could say that it was a loss.
        numbers.pop("stopped", None)
    return Label(truth=f"{wall:.1f} s", accepted=MEASURED, suffices=True, numbers=numbers)


def _is_set_unseen(history: History) -> bool:
    """Whether the first host's clock was set while no process on it wrote before and after."""
    jump, has_head = history.world.clocks.jump, history.world.cluster.launcher != "torchrun"
    if jump is None or jump[0] != 0:
        return False
    at_s = jump[1] * history.wall_s
    for attempt, later in zip_longest(history.attempts, history.attempts[1:]):
        begun = attempt.called_s if has_head else attempt.launched_s
        ended = attempt.end_s
        if attempt.is_killed and not (has_head and later is not None):
            said = [item.begin_s + item.duration_s for item in attempt.evaluations]
            ended = max([*said, *(item.written_s for item in attempt.checkpoints)], default=begun)
        elif attempt.is_killed and later is not None:
            ended = later.launched_s
        if begun < at_s < ended:
            return False
    return True


def _label_schedule(history: History) -> Label:
    world, rates = history.world, history.curves.learning_rate
    # The last steps of a run that was killed are not in its log.
    relative = 0.05 if history.attempts[-1].is_killed else 0.01
    numbers = {"highest rate as run": Expected(value=float(rates.max()), relative=relative)}
    if world.training.deviation is None:
        numbers["largest difference from the plan"] = Expected(value=0.0, absolute=0.01)
    return Label(
        truth=world.training.schedule,
        accepted=MEASURED,
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
    return Label(truth=f"{world.training.pairs} pairs", accepted=MEASURED, suffices=True, numbers=numbers)


def _label_files(history: History) -> Label:
    written = [item.step for attempt in history.attempts for item in attempt.checkpoints]
    accepted = MEASURED if written else frozenset({CANNOT_TELL, "measured"})
    numbers = {"kept": Expected(value=len(history.kept_steps))} if written else {}
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
    return Label(truth=f"{sum(files.values())} bytes", accepted=MEASURED, suffices=True, numbers=numbers)
