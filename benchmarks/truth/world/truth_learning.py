"""The truth about what was learnt, from the noise-free curves and their continuation."""

from dataclasses import dataclass, replace

import numpy as np
from benchmarks.truth.world.history import History
from benchmarks.truth.world.label import CANNOT_TELL, Label
from benchmarks.truth.world.learning import curves, gain_spread, planned_rates
from numpy.typing import NDArray

__all__ = ["label_overfitting", "label_trained"]

_BORDER_LOSS, _LEAST_LOSS, _BORDER_BLEU = 0.01, 0.005, 0.2
_NEAR, _FAR = 0.7, 1.4
_NEAR_BLEU, _FAR_BLEU = 0.5, 2.0
"""Wider, for no set is large enough to tell a tenth of a BLEU."""
_RISE = 0.01
_NOTICED = 0.001
"""Rise of the loss, as a share, below which there is none worth speaking of."""
_SHOWS = 4
"""Noises of an evaluation above which nobody can overlook a rise: one below may be a chance of some evaluations."""
_FEWEST = 4
_STUCK = 0.5
"""Share of the first loss from which on a model that has settled may be said to know frequent pieces only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gain:
    """What half as many steps again would bring, in units of the borders."""

    loss: float
    bleu: float
    """nan where BLEU was not measured."""
    share: float

    @property
    def verdicts(self) -> frozenset[str]:
        """By the borders: loss and BLEU alike, or partly."""
        sides = [_sides(self.loss, _NEAR, _FAR)]
        if np.isfinite(self.bleu):
            sides.append(_sides(self.bleu, _NEAR_BLEU, _FAR_BLEU))
        accepted = {"partly"} if any(len(side) > 1 for side in sides) else set()
        pairs = [(first, second) for first in sides[0] for second in sides[-1]]
        return frozenset(accepted | {first if first == second else "partly" for first, second in pairs})


def _sides(gain: float, near: float, far: float) -> frozenset[str]:
    if gain < near:
        return frozenset({"yes"})
    return frozenset({"no"}) if gain > far else frozenset({"yes", "no"})


def label_trained(history: History) -> Label:
    """Is it fully trained?"""
    world, evaluated = history.world, _evaluated(history)
    special = _special(history)
    if special:
        return Label(truth=f"no ({special})", accepted=frozenset({"no"}), suffices=True, reason=special)
    gains = _gains(history)
    main, accepted, reason = gains[-1], *_verdicts(history, gains)
    suffices = True
    if reason or {"yes", "no"} <= accepted:
        suffices, reason = False, reason or "it is near the border"
    elif not (_rise(history) > _RISE and len(evaluated) >= _FEWEST):
        suffices, reason = _allows_trained(history, main, evaluated)
    if not suffices:
        accepted |= {CANNOT_TELL}
    if len(evaluated) < _FEWEST and world.learning.overfit_step < world.steps:
        # All that shows is the training loss, and that falls.
        accepted |= {"no"}
    numbers = f"loss {main.share:.2%}, {main.loss:.2f} borders; BLEU {main.bleu:.2f} borders"
    truth = f"{'/'.join(sorted(main.verdicts))} ({numbers})"
    return Label(truth=truth, accepted=accepted, suffices=suffices, reason=reason)


def _verdicts(history: History, gains: list[_Gain]) -> tuple[frozenset[str], str]:
    """Whatever a reader may say who knows the noise-free curve, and why there is more than one answer."""
    world, reason = history.world, ""
    accepted = _united(gains)
    if len({gain.verdicts for gain in gains}) > 1:
        reason = "it goes on differently to the end of its plan or beyond, or rises again later"
    unseen = _without_unseen_overfitting(history)
    if unseen is not history and _united(_gains(unseen)) != accepted:
        accepted, reason = accepted | _united(_gains(unseen)), "overfitting that does not show yet"
    if _rise(history) > _RISE / 2:
        # Past its minimum it is trained by the loss, whatever BLEU does.
        accepted |= {"yes"}
    if "yes" in accepted and history.curves.valid[world.steps] > _STUCK * np.log(world.model.vocabulary):
        accepted, reason = accepted | {"no"}, "so high a loss may be called stuck"
    if "partly" in accepted and history.curves.bleu[world.steps] < 1.0:
        # A BLEU of nothing is no witness.
        accepted |= _united([replace(gain, bleu=np.nan) for gain in gains])
    return accepted | ({"partly"} if {"yes", "no"} <= accepted else set()), reason


def _united(gains: list[_Gain]) -> frozenset[str]:
    return frozenset[str]().union(*(gain.verdicts for gain in gains))


def _without_unseen_overfitting(history: History) -> History:
    """The same with no overfitting, where the evaluations show none; else what was given."""
    world, evaluated = history.world, _evaluated(history)
    visible, noise = _visible_rise(history, evaluated)
    if not world.learning.overfit or visible > max(_NOTICED, _SHOWS * noise):
        return history
    return replace(history, world=replace(world, learning=replace(world.learning, overfit=0.0)))


def _special(history: History) -> str:
    """What makes a run unfinished whatever its curve does."""
    world = history.world
    if world.learning.diverge_step:
        return "it came apart"
    if world.starts[-1].last_step < 0.95 * world.training.warmup:
        return "still in warm-up"
    if world.learning.shape == "plateau":
        return "it only knows frequent pieces"
    return ""


def _evaluated(history: History) -> NDArray[np.int64]:
    finite = [step for step, item in sorted(history.evaluations.items()) if np.isfinite(item.valid)]
    return np.array(finite, np.int64)


def _continuations(history: History) -> list[NDArray[np.float64]]:
    """Learning rates to half as many steps again.

    A plan that was run to its end goes on as a longer one, for at a rate of nothing nothing is learnt; one that would
    end on the way goes on either way.
    """
    world, rates = history.world, history.curves.learning_rate
    last, end = world.steps, -(-3 * world.steps // 2)
    factor = world.training.deviation[1] if world.training.deviation else 1.0
    plan = max(start.max_steps for start in world.starts if start.last_step == last)
    ways = [plan] if plan >= end else [end] if plan == last else [plan, end]
    return [np.concatenate([rates, factor * planned_rates(world, most, last + 1, end)]) for most in ways]


def _gains(history: History) -> list[_Gain]:
    """By every way to go on, to the best point on it and to its end."""
    return [
        _gain(history, rates, is_best=is_best)
        for rates in _continuations(history)
        for is_best in (True, False)
    ]


def _gain(history: History, rates: NDArray[np.float64], *, is_best: bool) -> _Gain:
    world = history.world
    curve, last = curves(world, rates), world.steps
    end = last + int(np.argmin(curve.valid[last:])) if is_best else len(rates)
    now, then = curve.valid[last], curve.valid[end]
    bleu = (curve.bleu[end] - curve.bleu[last]) / _BORDER_BLEU if world.evidence.sentences >= 30 else np.nan
    border = max(_BORDER_LOSS * now, _LEAST_LOSS)
    return _Gain(loss=float((now - then) / border), bleu=float(bleu), share=float((now - then) / now))


def _allows_trained(history: History, main: _Gain, evaluated: NDArray[np.int64]) -> tuple[bool, str]:
    if len(evaluated) < _FEWEST:
        return False, f"{len(evaluated)} evaluations"
    spread, spread_bleu = gain_spread(history.world, _continuations(history)[-1], evaluated)
    border = max(_BORDER_LOSS * history.curves.valid[-1], _LEAST_LOSS)
    by_loss = abs(main.loss - 1) > 2.5 * spread / border
    by_bleu = not np.isfinite(main.bleu) or abs(main.bleu - 1) > 2.5 * spread_bleu / _BORDER_BLEU
    if by_loss and by_bleu:
        return True, ""
    return False, f"noise of evaluations: the gain is known to {spread / border:.2f} borders at best"


def _rise(history: History) -> float:
    """How far the noise-free loss is above its lowest point since the first evaluation, as a share of that."""
    valid = history.curves.valid[1 : history.world.steps + 1]
    lowest = float(np.nanmin(valid))
    return float((valid[-1] - lowest) / lowest)


def _visible_rise(history: History, evaluated: NDArray[np.int64]) -> tuple[float, float]:
    """The noise-free rise at the last evaluation above the lowest one, and their noise, as shares of the lowest."""
    valid = history.curves.valid[: history.world.steps + 1]
    noise = history.world.learning.noise / float(np.nanmin(valid))
    seen = valid[evaluated]
    return (float((seen[-1] - seen.min()) / seen.min()) if len(seen) else 0.0), noise


def label_overfitting(history: History) -> Label:
    """Is it overfitting?"""
    world, evaluated = history.world, _evaluated(history)
    if not world.pauses.evaluate_every or len(evaluated) < 3:
        reason = f"{len(evaluated)} evaluations"
        accepted = {"no"} if world.learning.diverge_step else _by_rise(history)
        return Label(
            truth="/".join(sorted(accepted)),
            accepted=frozenset(accepted | {CANNOT_TELL}),
            suffices=False,
            reason=reason,
        )
    if world.learning.diverge_step:
        return Label(
            truth="no (it came apart)", accepted=frozenset({"no"}), suffices=True, reason="it came apart"
        )
    # What came after the last look at the model nobody can know.
    rise, accepted = _rise(history), _by_rise(history) | _by_rise(_until(history, int(evaluated[-1])))
    visible, noise = _visible_rise(history, evaluated)
    suffices = visible > _SHOWS * noise or rise < _NOTICED
    if suffices and rise >= _NOTICED and not world.evidence.has_probe_loss:
        suffices = False
    if not suffices:
        # A rise that noise may hide is none by the documented test.
        accepted = accepted | {CANNOT_TELL} | ({"no"} if rise < _FAR * _RISE else set())
    reason = "" if suffices else f"a rise of {rise:.2%} in noise of {noise:.2%}"
    numbers = f"rise {rise:.2%}, noise {noise:.2%}, BLEU {_bleu_change(history):+.2f}"
    truth = f"{'/'.join(sorted(accepted - {CANNOT_TELL}))} ({numbers})"
    return Label(truth=truth, accepted=frozenset(accepted), suffices=suffices, reason=reason)


def _until(history: History, step: int) -> History:
    """The same run as if it had ended here."""
    starts = tuple(replace(start, last_step=min(start.last_step, step)) for start in history.world.starts)
    return replace(history, world=replace(history.world, starts=starts))


def _by_rise(history: History) -> set[str]:
    """The verdicts that the noise-free rise allows, as far as learning by heart is its cause."""
    world = history.world
    without = replace(world, learning=replace(world.learning, overfit=0.0))
    # A spike, or a learning rate that was raised again, lifts the loss on training pairs as well.
    other = _rise(replace(history, curves=curves(without, history.curves.learning_rate)))
    rise = _rise(history) - other
    accepted = {"no"} if rise < _NEAR * _RISE or other > _NOTICED else set()
    if rise >= _NOTICED or other > _NEAR * _RISE:
        accepted |= {"partly"}
    if rise < _NEAR * _RISE:
        return accepted
    change = _bleu_change(history)
    if not change > 0.6:
        accepted |= {"yes"}
    if not change > 0.15 and rise > _FAR * _RISE:
        accepted -= {"partly"}
    return accepted | ({"yes"} if rise < _FAR * _RISE else set())


def _bleu_change(history: History) -> float:
    """Of the noise-free BLEU since the loss was lowest; nan where it was not measured."""
    last = history.world.steps
    if history.world.evidence.sentences < 30:
        return float("nan")
    lowest = int(np.nanargmin(history.curves.valid[1 : last + 1])) + 1
    return float(history.curves.bleu[last] - history.curves.bleu[lowest])
