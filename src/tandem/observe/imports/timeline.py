"""The story that OpenSeq2Seq printed, as events with times: arithmetic on what it printed, nothing else."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TypeAlias

from tandem.artefact import JsonValue
from tandem.observe.imports.curves import Curves
from tandem.observe.imports.facts import GRADIENT_BYTES
from tandem.observe.imports.plain import formula, integer, plain_start, plain_step, text
from tandem.observe.imports.printed import Begun, Ended, Evaluated, Item, Printed, Saved
from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    LossMeasured,
    RunFinished,
    ScoreImported,
    TrainingFinished,
    TrainingStarted,
)

__all__ = ["SCORE_MEANING", "Anchors", "Timed", "Timeline", "typical_step_s"]

SCORE_MEANING = (
    "BLEU, from 0 to 1, of single pieces: each is the likeliest one after the reference's own pieces before it. "
    "Nothing was translated, and it is no BLEU of translations"
)
_CLOSE = 6e-5
"""Losses are printed with four digits."""

Timed: TypeAlias = tuple[float, Event]


class Timeline:
    """Gives each thing that was told its step and its time."""

    def __init__(self, facts: Mapping[str, JsonValue], *, curves: Curves, typical_s: float) -> None:
        self._facts, self._curves = facts, curves
        self._typical_s = typical_s
        self._interval = max(0, integer(facts, "print_loss_steps"))
        self._now_s = 0.0
        self._begun_s = 0.0
        self._best = math.inf
        self._last = -1
        self._first: int | None = None

    def begin(self, begun: Begun, items: Sequence[Item], *, time_s: float) -> Iterator[Timed]:
        """A start; `time_s` is its time, where the log has one, and never goes back."""
        self._now_s = max(self._now_s, time_s)
        self._begun_s = self._now_s
        first = next((item.step for item in items if isinstance(item, Printed)), None)
        self._first, self._last = first, -1
        yield self._now_s, self._start(begun, first or 0)

    def tell(self, begun: Begun, items: Sequence[Item]) -> Iterator[Timed]:
        """What followed a start."""
        window = _Window(begun=begun)
        for item in items:
            if isinstance(item, Evaluated):
                window.evaluations.append(item)
            elif isinstance(item, Printed):
                yield from self._close(window, item)
                window = _Window(after=item)
            elif isinstance(item, Saved):
                yield self._now_s, self._saved(item)
            elif isinstance(item, Ended):
                yield from self._end(window)
                window = _Window(after=window.after)
        yield from self._left(window)

    def _close(self, window: "_Window", printed: Printed) -> Iterator[Timed]:
        """A line about a step ends the window since the line before."""
        before_s, steps = self._now_s, self._steps(window, printed)
        known = not math.isnan(printed.mean_s)
        elapsed_s = printed.mean_s * steps if known else self._typical_s * steps
        if not math.isnan(elapsed_s):
            self._now_s += elapsed_s
        paused_s = math.nan
        if window.after is not None and known and window.evaluations:
            paused_s = max(0.0, elapsed_s - self._typical_s * steps) / len(window.evaluations)
        for evaluated in window.evaluations:
            step = self._step_of(window, evaluated, until=printed.step)
            yield from self._evaluation(
                evaluated, step=step, paused_s=paused_s, at_s=self._at(window, step, before_s)
            )
        self._last = printed.step
        # A window with an evaluation or a start-up in it tells nothing of its steps alone.
        is_clean = not window.evaluations and not window.is_first
        yield self._now_s, self._step(printed, duration_s=printed.mean_s if is_clean else math.nan)

    def _steps(self, window: "_Window", printed: Printed) -> int:
        """Steps that the printed mean was taken over."""
        if window.after is None:
            # The tool divides the time since it started by the interval of its lines.
            return self._interval
        return printed.step - window.after.step

    def _left(self, window: "_Window") -> Iterator[Timed]:
        """Evaluations after the last line about a step."""
        for evaluated in window.evaluations:
            step = self._step_of(window, evaluated, until=None)
            yield from self._evaluation(evaluated, step=step, paused_s=math.nan, at_s=self._now_s)

    def _at(self, window: "_Window", step: int | None, before_s: float) -> float:
        """When an evaluation began: so many typical steps after the line before, or at the end of a start-up."""
        if window.after is None or step is None or math.isnan(self._typical_s):
            return self._now_s
        return min(self._now_s, before_s + (step - window.after.step) * self._typical_s)

    def _evaluation(
        self, evaluated: Evaluated, *, step: int | None, paused_s: float, at_s: float
    ) -> Iterator[Timed]:
        if step is None or (math.isnan(evaluated.loss) and math.isnan(evaluated.score)):
            return
        end_s = at_s if math.isnan(paused_s) else min(self._now_s, at_s + paused_s)
        yield at_s, EvaluationStarted(step=step)
        if not math.isnan(evaluated.loss):
            yield (
                end_s,
                LossMeasured(
                    step=step,
                    set="valid",
                    loss=evaluated.loss,
                    target_tokens=0,
                    pairs=0,
                    duration_s=math.nan,
                ),
            )
        if not math.isnan(evaluated.score):
            yield (
                end_s,
                ScoreImported(
                    step=step,
                    set="valid",
                    name="Eval_BLEU_Score",
                    value=evaluated.score,
                    meaning=SCORE_MEANING,
                ),
            )
        is_best, self._best = evaluated.loss < self._best, min(self._best, evaluated.loss)
        yield (
            end_s,
            EvaluationFinished(step=step, duration_s=paused_s, is_best_loss=is_best, is_best_bleu=False),
        )

    def _step_of(self, window: "_Window", evaluated: Evaluated, *, until: int | None) -> int | None:
        """Steps at which the tool evaluates are not printed, but its rule and the lines around say which it was."""
        known = self._curves.step_of("eval_loss", evaluated.loss, within=_CLOSE)
        if known is not None:
            return known
        low = window.after.step if window.after is not None else self._first
        if low is None:
            return 0 if window.begun is not None and window.begun.is_told and window.is_new else None
        if window.after is None:
            return low
        return self._by_rule(low, until=until if until is not None else low + self._interval)

    def _by_rule(self, low: int, *, until: int) -> int:
        every, last = integer(self._facts, "eval_steps"), integer(self._facts, "max_steps")
        first = self._first or 0
        if every > 0:
            due = first + (low - first + every - 1) // every * every
            if due <= until:
                return due
        return last - 1 if low <= last - 1 <= until else low

    def _start(self, begun: Begun, step: int) -> TrainingStarted:
        parameters = integer(self._facts, "reported_parameters")
        ranks = integer(self._facts, "gpus")
        return plain_start(
            step=step,
            resumed_from=begun.resumed_from,
            parameters=parameters,
            ranks=ranks,
            device="cuda" if "gpu_name" in self._facts else "",
            precision=text(self._facts, "precision"),
            max_steps=integer(self._facts, "max_steps"),
            schedule=formula(self._facts.get("schedule")),
            gradient_bytes=GRADIENT_BYTES * parameters if ranks > 1 else 0,
        )

    def _step(self, printed: Printed, *, duration_s: float) -> Event:
        near = max(1, self._interval // 2)
        each, ranks = integer(self._facts, "pairs_per_gpu"), integer(self._facts, "gpus")
        return plain_step(
            step=printed.step,
            epoch=printed.epoch,
            loss=printed.loss,
            learning_rate=self._curves.near("learning_rate", printed.step, within=near),
            gradient_norm=self._curves.near("global_gradient_norm", printed.step, within=near),
            pairs=each * ranks,
            duration_s=duration_s,
        )

    @staticmethod
    def _saved(saved: Saved) -> CheckpointWritten:
        return CheckpointWritten(
            step=saved.step, folder=saved.path, bytes=0, blocked_s=math.nan, write_s=math.nan, files={}
        )

    def _end(self, window: "_Window") -> Iterator[Timed]:
        yield from self._left(window)
        last, stop = max(self._last, 0), integer(self._facts, "max_steps")
        is_planned = stop > 0 and last + max(self._interval, 1) >= stop
        reason = "max_steps" if is_planned else "the tool said that it finished training"
        yield (
            self._now_s,
            TrainingFinished(step=last, tokens=0, reason=reason, duration_s=self._now_s - self._begun_s),
        )
        yield self._now_s, RunFinished(reason=reason)


class _Window:
    """What was told between two lines about steps."""

    def __init__(self, *, begun: Begun | None = None, after: Printed | None = None) -> None:
        self.begun, self.after = begun, after
        self.evaluations: list[Evaluated] = []

    @property
    def is_first(self) -> bool:
        """Whether a start-up, or the part of a log that is lost, may be in it."""
        return self.after is None

    @property
    def is_new(self) -> bool:
        """Whether training began anew, from no checkpoint."""
        return self.begun is not None and not self.begun.resumed_from


def typical_step_s(parts: Sequence[tuple[Begun, Sequence[Item]]]) -> float:
    """The median of the means that hold neither an evaluation nor a start-up; nan where there is none."""
    means: list[float] = []
    for _, items in parts:
        for before, item in pairwise(items):
            if (
                isinstance(item, Printed)
                and isinstance(before, Printed | Saved)
                and not math.isnan(item.mean_s)
            ):
                means.append(item.mean_s)
    return median(means) if means else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchors:
    """Times by arithmetic and the wall clock at the same steps, in order."""

    told_s: Sequence[float]
    wall_s: Sequence[float]

    def wall(self, time_s: float) -> float:
        """On the wall clock: between two anchors in proportion, outside them at the pace of seconds."""
        place = bisect_right(self.told_s, time_s)
        if place in {0, len(self.told_s)}:
            end = 0 if place == 0 else -1
            return self.wall_s[end] + time_s - self.told_s[end]
        low, high = self.told_s[place - 1], self.told_s[place]
        share = (time_s - low) / (high - low)
        return self.wall_s[place - 1] + share * (self.wall_s[place] - self.wall_s[place - 1])
