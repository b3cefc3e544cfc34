"""What would be a right answer to each question about a simulated run, by what the simulator knows.

Borders are those that docs/verdicts.md defines; near a border, both sides are right.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from benchmarks.truth.curves import learning_rate, true_bleu, true_valid
from benchmarks.truth.scenario import Scenario
from benchmarks.truth.simulate import Truth

__all__ = ["Label", "Value", "label_run"]

_NETWORK = ((0.25, "yes"), (0.10, "partly"), (-math.inf, "no"))
_NEAR = 0.025
_MORE = 1.5
_FEW_EVALUATIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number that the evidence has to have, under this name."""

    name: str
    truth: float
    within: float
    """Share of the truth that it may be off."""
    or_by: float = 0.0
    """How much it may be off in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The verdicts that are right, and the numbers that have to come with them."""

    verdicts: frozenset[str]
    values: tuple[Value, ...] = ()


def label_run(scenario: Scenario, truth: Truth) -> Mapping[str, Label]:
    """Label every question that has a true answer; a question that is not there is not asked of this run."""
    labels = {
        "duration": _duration(scenario, truth),
        "network": _network(scenario, truth),
        "gpus": _gpus(scenario, truth),
        "schedule": _schedule(scenario),
        "data": _measured(Value(name="clean pairs", truth=scenario.pairs, within=0.0)),
        "checkpoint_files": _checkpoint_files(truth),
        "checkpoint_size": _checkpoint_size(truth),
        "step_time": _measured(Value(name="median", truth=truth.step_s, within=0.02)),
        "trained": Label(verdicts=_trained(scenario)),
        "overfitting": Label(verdicts=_overfitting(scenario)),
        "step_network": _step_network(scenario),
    }
    if scenario.seen.ranks < scenario.hardware.ranks:
        del labels["gpus"]
    if truth.is_reader_hidden:
        del labels["network"]
    return {key: label for key, label in labels.items() if label.verdicts}


def _measured(*values: Value) -> Label:
    return Label(verdicts=frozenset({"measured"}), values=values)


def _duration(scenario: Scenario, truth: Truth) -> Label:
    looked_s = truth.evaluations * scenario.plan.evaluation_s
    return _measured(
        Value(name="wall time", truth=truth.wall_s, within=0.01),
        Value(name="evaluation", truth=looked_s, within=0.02),
        Value(name="lost to restarts", truth=truth.lost_s, within=0.02),
    )


def _network(scenario: Scenario, truth: Truth) -> Label:
    """By the share of the step that vanishes where sending takes no time."""
    if scenario.hardware.hosts == 1:
        return Label(verdicts=frozenset({"no"}))
    share = truth.network_share
    if scenario.seen.ranks < scenario.hardware.ranks:
        return Label(verdicts=_near(share, _NETWORK) | {"cannot tell"})
    # A wait that is not told apart from others by probes is a lower bound, and of small shares noise is a large part.
    values = (
        (Value(name="exposed share", truth=share, within=0.1),)
        if share > 0.15 and scenario.seen.probes
        else ()
    )
    return Label(verdicts=_near(share, _NETWORK), values=values)


def _near(share: float, borders: tuple[tuple[float, str], ...]) -> frozenset[str]:
    return frozenset(
        next(verdict for border, verdict in borders if share + move >= border)
        for move in (-_NEAR, 0.0, _NEAR)
    )


def _gpus(scenario: Scenario, truth: Truth) -> Label:
    """Yes: nine tenths of the step are computing, at a third of the peak; no: less than three quarters are."""
    computing = Value(name="computing", truth=truth.compute_share, within=0.04, or_by=0.03)
    by_time = _near(truth.compute_share, ((0.9, "yes"), (0.75, "partly"), (-math.inf, "no")))
    if not scenario.seen.peak:
        return Label(verdicts=by_time | {"cannot tell"}, values=(computing,))
    by_work = _near(truth.flops_share, ((0.35, "yes"), (-math.inf, "partly")))
    if by_work != {"yes"} and "yes" in by_time:
        by_time = (by_time - {"yes"}) | by_work
    work = Value(name="model FLOPs utilisation", truth=truth.flops_share, within=0.04)
    return Label(verdicts=by_time, values=(computing, work))


def _trained(scenario: Scenario) -> frozenset[str]:
    """Yes: half as many steps again bring less than 1 % of valid loss and less than 0.2 BLEU."""
    learning, plan = scenario.learning, scenario.plan
    if learning.breaks_at is not None or plan.steps < plan.warmup:
        return frozenset({"no"})
    if _is_spiking(scenario):
        return frozenset({"no", "cannot tell"})
    ends = np.array([plan.steps, _MORE * plan.steps], dtype=float)
    now, later = true_valid(learning, ends)
    bleu_gain = float(np.diff(true_bleu(learning, ends))[0]) if plan.scores else 0.0
    gain = (now - later) / now
    if gain < 0 and (bleu_gain > 0.2 or _has_bleu_risen(scenario)):
        return frozenset({"yes", "partly"})
    if max(gain / 0.01, bleu_gain / 0.2) < 0.6 and _is_drowned(scenario, now=now, gain=gain):
        return frozenset({"yes", "partly", "cannot tell"})
    few = {"cannot tell"} if len(_evaluations(scenario)) < _FEW_EVALUATIONS else set[str]()
    return _by_worth(gain / 0.01, bleu_gain / 0.2, scores=plan.scores) | few


def _by_worth(loss: float, bleu: float, *, scores: bool) -> frozenset[str]:
    """By both gains, in units of what counts."""
    if max(loss, bleu) < 0.6:
        return frozenset({"yes"})
    if max(loss, bleu) <= 1.8:
        return frozenset({"yes", "partly", "no"})
    # Where one of the two has stopped and the other has not, it is trained in part.
    return frozenset({"no", "partly"}) if scores and min(loss, bleu) < 1.2 else frozenset({"no"})


def _has_bleu_risen(scenario: Scenario) -> bool:
    """Whether BLEU got better since the valid loss was lowest."""
    learning, plan = scenario.learning, scenario.plan
    ends = np.array([min(learning.turns_at, plan.steps), plan.steps], dtype=float)
    return plan.scores and float(np.diff(true_bleu(learning, ends))[0]) > 0.3


def _is_spiking(scenario: Scenario) -> bool:
    """Whether the run ends while the loss is still coming down from a jump."""
    learning, plan = scenario.learning, scenario.plan
    return bool(learning.spikes_at) and plan.steps - learning.spikes_at < 5 * learning.spike_steps


def _is_drowned(scenario: Scenario, *, now: float, gain: float) -> bool:
    """Whether a line through all evaluations is so unsure that it cannot rule out a gain that is worth it."""
    learning, seen = scenario.learning, len(_evaluations(scenario))
    noise = math.hypot(learning.noise, learning.cycle / math.sqrt(2)) / now
    # Evaluations on one slope of a wave say the same thing again.
    seen = min(seen, math.ceil(2 * scenario.plan.steps / learning.cycle_steps)) if learning.cycle else seen
    return bool(noise * math.sqrt(12 / seen) > 0.8 * (0.01 - gain))


def _evaluations(scenario: Scenario) -> range:
    plan = scenario.plan
    return (
        range(plan.evaluate_every, plan.steps + 1, plan.evaluate_every) if plan.evaluate_every else range(0)
    )


def _overfitting(scenario: Scenario) -> frozenset[str]:
    """Yes: the true valid loss is above its minimum by more than one per cent; partly: and yet BLEU rises."""
    learning, plan = scenario.learning, scenario.plan
    steps = np.array(_evaluations(scenario), dtype=float)
    if len(steps) == 0:
        return frozenset({"cannot tell"})
    if learning.breaks_at is not None or _is_spiking(scenario):
        return frozenset({"no", "cannot tell"})
    few = frozenset({"cannot tell"} if len(steps) < _FEW_EVALUATIONS else ())
    valid = true_valid(learning, steps)
    excess = float(valid[-1] / valid.min() - 1)
    if excess < 0.003:
        return frozenset({"no"}) | few
    bleu = true_bleu(learning, steps)
    risen = float(bleu[-1] - bleu[int(valid.argmin())]) if plan.scores else 0.0
    if excess < 0.02:
        return frozenset({"yes", "partly", "no"})
    if risen > 0.3:
        return frozenset({"partly"}) if risen > 1.0 else frozenset({"yes", "partly"})
    return frozenset({"yes"})


def _schedule(scenario: Scenario) -> Label:
    steps = np.arange(1, scenario.plan.steps + 1, dtype=float)
    rates = learning_rate(scenario, steps)
    return _measured(Value(name="highest rate as run", truth=float(rates.max()), within=0.001))


def _checkpoint_files(truth: Truth) -> Label:
    if not truth.checkpoints:
        return _measured()
    return _measured(Value(name="kept", truth=truth.checkpoints, within=0.0))


def _checkpoint_size(truth: Truth) -> Label:
    if not truth.checkpoints:
        return Label(verdicts=frozenset({"cannot tell"}))
    return _measured(Value(name="checkpoint", truth=truth.checkpoint_bytes, within=0.001))


def _step_network(scenario: Scenario) -> Label:
    if scenario.hardware.ranks == 1:
        return _measured()
    values = [Value(name="bytes a step, predicted", truth=scenario.ring_bytes, within=0.01)]
    if scenario.seen.samples and scenario.hardware.hosts > 1 and not scenario.link.background:
        # What the interface counts has headers and other programs' traffic in it.
        values.append(Value(name="node1 eth0 sent a step", truth=scenario.ring_bytes * 1.045, within=0.06))
    return _measured(*values)
