"""The life of a run on true time: starts, steps, evaluations, checkpoints, losses, and where every second went."""

from dataclasses import dataclass, field, replace
from math import inf, isfinite, nan

import numpy as np
from benchmarks.truth.world.learning import Curves, curves, learning_rates
from benchmarks.truth.world.timing import Array, Timing, simulate_steps
from benchmarks.truth.world.world import Start, World
from numpy.typing import NDArray

__all__ = ["Attempt", "Checkpoint", "Evaluation", "History", "simulate"]

_KEEP_LAST, _KEEP_BEST = 3, 3
_REPORTED_S = 0.3
"""What a head takes to hear that a worker died on its own host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One look at the model; a number that was not measured is nan."""

    step: int
    begin_s: float
    duration_s: float
    valid: float = nan
    probe: float = nan
    bleu: float = nan
    is_best_loss: bool = False
    is_best_bleu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint that came to its end."""

    step: int
    written_s: float
    blocked_s: float
    write_s: float
    removed: tuple[int, ...]
    """Steps of the checkpoints that were deleted after it."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One start, as it went."""

    start: Start
    first_step: int
    called_s: float
    """When the command was given, or the head began again."""
    launched_s: float
    """When the ranks wrote their first record."""
    training_s: float
    timing: Timing
    rejected_step: int = 0
    """Of the checkpoint that was found damaged; 0 where none was."""
    evaluations: list[Evaluation] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    trained_s: float = 0.0
    """When the last step was over, or the ranks died."""
    end_s: float = 0.0
    """When the ranks wrote their last record."""

    @property
    def is_killed(self) -> bool:
        """Whether nobody said good-bye."""
        return self.start.ending == "kill"


@dataclass(slots=True, kw_only=True)
class History:
    """All that happened."""

    world: World
    attempts: list[Attempt]
    curves: Curves
    nll: Array
    """Of the steps that stand: what a batch's loss was, with its noise; step 1 at index 0."""
    tokens: NDArray[np.int64]
    spent: dict[str, float]
    """Seconds of the first rank by what they went to; they sum to the wall time."""
    wall_s: float
    kept_steps: list[int] = field(default_factory=list)
    """Of the checkpoints that are there in the end."""

    @property
    def firsts(self) -> list[int]:
        """The first step of each start."""
        return [attempt.first_step for attempt in self.attempts]

    @property
    def evaluations(self) -> dict[int, Evaluation]:
        """The evaluations that stand, by step."""
        return {
            item.step: item
            for attempt in self.attempts
            for item in attempt.evaluations
            if self.stands(attempt, item.step)
        }

    def stands(self, attempt: Attempt, step: int) -> bool:
        """Whether no later start did the step again."""
        number = self.attempts.index(attempt)
        return all(step < later.first_step for later in self.attempts[number + 1 :])

    def standing(self, attempt: Attempt) -> NDArray[np.bool_]:
        """By step of a start: whether no later one did it again."""
        number = self.attempts.index(attempt)
        last = min(
            (later.first_step - 1 for later in self.attempts[number + 1 :]), default=attempt.start.last_step
        )
        return np.arange(attempt.first_step, attempt.start.last_step + 1) <= last


def simulate(world: World) -> History:
    """Play the run."""
    rng = np.random.default_rng([world.seed, 1])
    firsts, attempts, now = [], [], 0.0
    spent: dict[str, float] = dict.fromkeys(
        (
            "preparation",
            "start-up",
            "steps",
            "redone",
            "rehearsals",
            "evaluation",
            "checkpoints",
            "restarts",
            "stopped",
            "rest",
        ),
        0.0,
    )
    saved: list[Checkpoint] = []
    for number, start in enumerate(world.starts):
        newest = max((item.step for item in saved), default=0)
        first = _resume_step(start, saved) + 1
        # A later start may find less than the one before left behind, but it never begins behind nothing.
        saved = [item for item in saved if item.step < first]
        firsts.append(first)
        attempt = _begin(world, start, first=first, now=now, is_new=number == 0, rng=rng, saved=saved)
        attempt.rejected_step = newest if newest >= first else 0
        attempts.append(attempt)
        now = attempt.end_s
    rates = learning_rates(world, firsts)
    noise = np.random.default_rng([world.seed, 3])
    curve = curves(world, rates)
    history = History(
        world=world,
        attempts=attempts,
        curves=curve,
        nll=_batch_losses(world, curve, noise),
        tokens=_tokens(world, noise),
        spent=spent,
        wall_s=now,
    )
    _measure(history, np.random.default_rng([world.seed, 2]))
    _thin_out(history)
    _account(history)
    return history


def _resume_step(start: Start, saved: list[Checkpoint]) -> int:
    steps = sorted(item.step for item in saved)
    if start.is_rejected and len(steps) > 1:
        steps.pop()
    return steps[-1] if steps else 0


def _begin(
    world: World,
    start: Start,
    *,
    first: int,
    now: float,
    is_new: bool,
    rng: np.random.Generator,
    saved: list[Checkpoint],
) -> Attempt:
    pauses = world.pauses
    called = now + start.gap_s
    launch_s = pauses.launch_s * (0.8 + 0.4 * rng.random())
    # Under torchrun nobody writes before the ranks do, so that the run begins with them.
    has_head = world.cluster.launcher != "torchrun"
    launched = called + (pauses.prepare_s if is_new else 0.0) + (launch_s if has_head or not is_new else 0.0)
    training = launched + 0.6 + pauses.launch_s * 0.4 * rng.random()
    lengths = _pause_lengths(world, start, first, rng)
    timing = simulate_steps(
        world, start, first_step=first, begin_s=training + 0.002, pauses=lengths.sum(axis=1), rng=rng
    )
    attempt = Attempt(
        start=start,
        first_step=first,
        called_s=called,
        launched_s=launched,
        training_s=training,
        timing=timing,
    )
    _fill_pauses(world, attempt, lengths, saved, rng)
    return attempt


_BEFORE, _LOSS, _TRANSLATE, _SAVE, _AFTER = range(5)


def _pause_lengths(world: World, start: Start, first: int, rng: np.random.Generator) -> Array:
    """Seconds after each step for: what nothing explains before, losses, translating, a checkpoint, and after."""
    steps = np.arange(first, start.last_step + 1)
    pauses, last = world.pauses, steps == start.last_step
    is_evaluated = np.zeros(len(steps), bool)
    if pauses.evaluate_every:
        is_evaluated = steps % pauses.evaluate_every == 0
        is_evaluated |= last & (start.ending == "finish")
        is_evaluated &= ~(last & (start.ending != "finish"))
    is_saved = is_evaluated.copy()
    if pauses.checkpoint_every:
        is_saved |= steps % pauses.checkpoint_every == 0
    is_saved |= last & (start.ending != "kill")
    is_saved &= ~(last & (start.ending == "kill"))
    noise = 0.9 + 0.2 * rng.random((len(steps), 5))
    lengths = np.zeros((len(steps), 5))
    lengths[:, _BEFORE] = (is_evaluated | is_saved) * pauses.loop_s
    lengths[:, _LOSS] = is_evaluated * pauses.loss_s * (2 if world.evidence.has_probe_loss else 1)
    lengths[:, _TRANSLATE] = is_evaluated * (pauses.translate_s if world.evidence.sentences else 0.0)
    lengths[:, _SAVE] = is_saved * pauses.blocked_s
    lengths[:, _AFTER] = lengths[:, _BEFORE]
    return lengths * noise


def _measure(history: History, rng: np.random.Generator) -> None:
    """Put numbers into the evaluations; one that is made again after a restart gives the same ones."""
    world, curve = history.world, history.curves
    learning, evidence = world.learning, world.evidence
    memory, last = learning.noise_memory, np.zeros(2)
    numbers: dict[int, tuple[float, float, float]] = {}
    for step in sorted({item.step for attempt in history.attempts for item in attempt.evaluations}):
        last = memory * last + np.sqrt(1 - memory**2) * rng.standard_normal(2)
        noise = learning.noise * last
        # Both sets see the same weights, so that they share half of the noise.
        probe = curve.probe[step] + 0.7 * noise[0] + 0.7 * noise[1] if evidence.has_probe_loss else nan
        bleu = max(curve.bleu[step] + learning.bleu_noise * rng.standard_normal(), 0.0)
        numbers[step] = (
            float(curve.valid[step] + noise[0]),
            float(probe),
            float(bleu) if evidence.sentences else nan,
        )
    for attempt in history.attempts:
        before = {step: value for step, value in numbers.items() if step < attempt.first_step}
        best_loss = min((loss for loss, _, _ in before.values() if isfinite(loss)), default=inf)
        best_bleu = max((bleu for _, _, bleu in before.values() if isfinite(bleu)), default=-1.0)
        for number, item in enumerate(attempt.evaluations):
            valid, probe, bleu = numbers[item.step]
            attempt.evaluations[number] = replace(
                item,
                valid=valid,
                probe=probe,
                bleu=bleu,
                is_best_loss=valid < best_loss,
                is_best_bleu=bleu > best_bleu,
            )
            best_loss, best_bleu = min(best_loss, valid), max(best_bleu, bleu)


def _thin_out(history: History) -> None:
    """Remove checkpoints as the run does: the last ones stay, and the best."""
    scores = history.evaluations
    there: list[int] = []
    for attempt in history.attempts:
        there = [step for step in there if step < attempt.first_step]
        for number, item in enumerate(attempt.checkpoints):
            there = [step for step in there if step != item.step] + [item.step]
            scored = [step for step in there if step in scores and isfinite(scores[step].valid)]
            by_loss = sorted(scored, key=lambda step: scores[step].valid)[:_KEEP_BEST]
            by_bleu = (
                sorted(scored, key=lambda step: -scores[step].bleu)[:_KEEP_BEST]
                if history.world.evidence.sentences
                else []
            )
            staying = {*there[-_KEEP_LAST:], *by_loss, *by_bleu}
            removed = tuple(step for step in there if step not in staying)
            there = [step for step in there if step in staying]
            attempt.checkpoints[number] = replace(item, removed=removed)
    history.kept_steps = there


def _fill_pauses(
    world: World,
    attempt: Attempt,
    lengths: Array,
    saved: list[Checkpoint],
    rng: np.random.Generator,
) -> None:
    """Put evaluations and checkpoints into the pauses, and end the start."""
    timing, pauses = attempt.timing, world.pauses
    ends = timing.end.max(axis=1)
    kill_s = ends[-1] + (0.1 + 0.8 * rng.random()) * float(timing.duration[-1].mean())
    for k in np.flatnonzero(lengths.sum(axis=1)):
        step = attempt.first_step + int(k)
        begin = ends[k] + lengths[k, _BEFORE]
        after = begin + lengths[k, _LOSS] + lengths[k, _TRANSLATE]
        if after > begin:
            attempt.evaluations.append(Evaluation(step=step, begin_s=begin, duration_s=after - begin))
        if lengths[k, _SAVE]:
            written = after + lengths[k, _SAVE] + pauses.write_s * (0.8 + 0.4 * rng.random())
            if attempt.is_killed and written >= kill_s:
                continue
            saved.append(
                Checkpoint(
                    step=step,
                    written_s=written,
                    blocked_s=float(lengths[k, _SAVE]),
                    write_s=float(written - after - lengths[k, _SAVE]),
                    removed=(),
                )
            )
            attempt.checkpoints.append(saved[-1])
    if attempt.is_killed:
        attempt.trained_s = attempt.end_s = kill_s
        return
    attempt.trained_s = ends[-1]
    written = max((item.written_s for item in attempt.checkpoints), default=ends[-1])
    attempt.end_s = max(ends[-1] + lengths[-1].sum(), written) + 0.05


def _batch_losses(world: World, curve: Curves, rng: np.random.Generator) -> Array:
    learning = world.learning
    nll = (
        curve.probe[1:]
        + learning.dropout_cost
        + learning.step_noise * rng.standard_normal(len(curve.probe) - 1)
    )
    return np.maximum(nll, 0.01) if learning.diverge_to != np.inf or not learning.diverge_step else nll


def _tokens(world: World, rng: np.random.Generator) -> NDArray[np.int64]:
    mean = world.model.tokens_per_update
    noise = 1 + 0.01 * rng.standard_normal(world.steps)
    return np.maximum((mean * noise).astype(np.int64), 8)


def _account(history: History) -> None:
    """Say where every second of the first rank went."""
    spent, before_s = history.spent, 0.0
    pauses = history.world.pauses
    for number, attempt in enumerate(history.attempts):
        timing, first = attempt.timing, number == 0
        duration, stands = timing.duration[:, 0], history.standing(attempt)
        after_loss = not first and history.attempts[number - 1].is_killed
        idle = attempt.called_s - before_s
        setup = timing.begin[0, 0] - attempt.called_s
        if first:
            spent["preparation"] += pauses.prepare_s
            spent["start-up"] += setup - pauses.prepare_s + idle
        elif after_loss:
            spent["restarts"] += idle + setup
        else:
            spent["stopped"] += idle
            spent["start-up"] += setup
        evaluation = sum(item.duration_s for item in attempt.evaluations)
        blocked = sum(item.blocked_s for item in attempt.checkpoints)
        spent["steps"] += float(duration[stands].sum())
        spent["redone"] += float(duration[~stands].sum())
        spent["rehearsals"] += float(timing.rehearsal[:, 0].sum())
        spent["evaluation"] += evaluation
        spent["checkpoints"] += blocked
        busy = duration.sum() + timing.rehearsal[:, 0].sum() + evaluation + blocked
        spent["rest"] += float(attempt.end_s - timing.begin[0, 0] - busy)
        before_s = attempt.end_s
