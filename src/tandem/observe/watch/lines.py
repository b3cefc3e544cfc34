"""A run as plain lines, for a file or a terminal that cannot draw."""

import math

from tandem.observe.exchange_mode import describe_mode
from tandem.observe.numbers import count, duration, megabytes, short_count
from tandem.observe.shares import shares_sentence
from tandem.observe.watch.life import Life, is_quiet
from tandem.observe.watch.progress import progress_of, share_text, status, way_of
from tandem.observe.watch.state import Evaluation, WatchState
from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    Event,
    ExchangeChosen,
    RunFinished,
    RunImported,
    SharesChanged,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
)
from tandem.runlog.record import Record

__all__ = ["Narrator"]

NANO = 1_000_000_000
SHORTEST_S = 10.0
LONGEST_S = 60.0
PART = 0.01
"""Steps are told of as often as this part of the time spent, within the two limits above."""


class Narrator:
    """Says in lines what is worth telling; steps are told of every ten seconds at first, every minute later."""

    def __init__(self) -> None:
        self._told_ns = 0
        self._untold_ns = 0
        """Of a step that was passed over; 0 where there is none."""
        self._has_told_end = False
        self._life: Life = "at work"
        self._quiet_ns = 0
        """Of the last word before a silence that was told of."""

    @property
    def waits(self) -> bool:
        """Whether it has said that the run is silent or lost, and not yet that it was heard again."""
        return is_quiet(self._life)

    def lines(self, record: Record, state: WatchState) -> list[str]:
        """What to print about a record that the state has taken."""
        if record.rank not in (None, 0):
            return []
        match record.event:
            case StepFinished():
                return self._step(record, state)
            case EvaluationFinished():
                return [_evaluated(state.evaluations[-1]), *_sample(state, record.event.step)]
            case RunFinished() if not state.is_closed:
                return self.rest(state)
            case RunFinished(reason=reason):
                was_told, self._has_told_end = self._has_told_end, True
                return [] if was_told else [*self.rest(state), f"run finished: {reason}"]
            case event:
                if isinstance(event, TrainingStarted | TrainingFinished):
                    self._has_told_end = isinstance(event, TrainingFinished)
                    self._untold_ns = 0
                return _told(event, state)

    def meanwhile(self, state: WatchState, *, life: Life, now_ns: int) -> list[str]:
        """What to print while no record comes: the step that was last, and that the run says nothing."""
        is_last = life != "at work" or now_ns - self._untold_ns > _pause_ns(state)
        lines = self.rest(state) if is_last else []
        # One that is lost and is being resumed is only silent again for a while.
        if is_quiet(life) and self._life not in (life, "lost"):
            self._quiet_ns, self._life = state.last_time_ns, life
            lines.append(f"warning: {status(state, life=life, now_ns=now_ns)}")
        return lines

    def hear(self, state: WatchState, *, life: Life) -> list[str]:
        """What to print before the first record after a silence."""
        if not self.waits or is_quiet(life):
            return []
        self._life = life
        return [f"heard again after {duration((state.last_time_ns - self._quiet_ns) / NANO)}"]

    def rest(self, state: WatchState) -> list[str]:
        """What to print of the last step, where that was passed over."""
        is_untold, self._untold_ns = self._untold_ns > 0, 0
        return [_stepped(state)] if is_untold else []

    def _step(self, record: Record, state: WatchState) -> list[str]:
        if self._has_told_end:
            return []
        if record.time_ns - self._told_ns < _pause_ns(state):
            self._untold_ns = record.time_ns
            return []
        self._told_ns, self._untold_ns = record.time_ns, 0
        return [_stepped(state)]


def _pause_ns(state: WatchState) -> float:
    return min(LONGEST_S, max(SHORTEST_S, PART * state.spent.total_s)) * NANO


def _stepped(state: WatchState) -> str:
    progress, recent, last = progress_of(state, life="at work"), state.recent, state.recent.last
    done = "" if progress is None else f" ({share_text(progress.share)})"
    parts = [f"{way_of(state, progress)}{done}", f"epoch {state.epoch + 1}", f"loss {recent.loss:.3f}"]
    if recent.tokens_per_s:
        parts += [f"{recent.tokens_per_s:,.0f} target tokens/s"]
    if last is not None:
        rates = {"learning rate": f"{last.learning_rate:.2e}", "gradient norm": f"{last.gradient_norm:.2f}"}
        is_ours = state.imported is None
        parts += [f"{name} {value}" for name, value in rates.items() if is_ours or value != "nan"]
    if progress is not None and progress.left_s is not None:
        parts += [f"{duration(progress.left_s)} left"]
    return ", ".join(parts)


def _evaluated(evaluation: Evaluation) -> str:
    parts = []
    if evaluation.valid_loss is not None:
        perplexity = math.exp(min(evaluation.valid_loss, 100.0))
        parts += [f"valid loss {evaluation.valid_loss:.3f}", f"perplexity {perplexity:,.2f}"]
    if evaluation.probe_loss is not None:
        parts += [f"probe loss {evaluation.probe_loss:.3f}"]
    if evaluation.bleu is not None:
        parts += [f"BLEU {evaluation.bleu:.1f}", f"chrF {evaluation.chrf:.1f}"]
    best = [
        name for name, flag in (("loss", evaluation.is_best_loss), ("BLEU", evaluation.is_best_bleu)) if flag
    ]
    parts += [f"best {' and '.join(best)} so far"] if best else []
    return (
        f"evaluated at step {count(evaluation.step)} in {duration(evaluation.duration_s)}: {', '.join(parts)}"
    )


def _sample(state: WatchState, step: int) -> list[str]:
    if not state.samples or state.samples[0].step != step:
        return []
    sample = state.samples[0]
    return [
        f"  source     {sample.source}",
        f"  reference  {sample.reference}",
        f"  model      {sample.hypothesis}",
    ]


def _told(event: Event, state: WatchState) -> list[str]:
    match event:
        case RunImported():
            return [f"imported from {event.tool}"]
        case TrainingStarted() if state.imported is None:
            return [_started(event, attempt=state.attempt), *_slower(event)]
        case ExchangeChosen() | SharesChanged():
            said = describe_mode(event) if isinstance(event, ExchangeChosen) else shares_sentence(event)
            return [said] if said else []
        case CheckpointWritten():
            size, waited = megabytes(event.bytes), duration(event.blocked_s)
            return [
                f"checkpoint {event.folder}: {size} in {duration(event.write_s)}, training waited {waited}"
            ]
        case TrainingFinished():
            return [_finished(event, state)]
    return []


def _started(event: TrainingStarted, *, attempt: int) -> str:
    ranks = f"{event.ranks} rank{'s' if event.ranks > 1 else ''} ({event.device} {event.precision})"
    size = f"{short_count(event.parameters)} parameters"
    again = f" (attempt {count(attempt)})" if attempt > 1 else ""
    if event.resumed_from:
        after = f"after step {count(event.step)} from {event.resumed_from}"
        return f"training goes on {after}{again}: {size}, {ranks}"
    planned = f"{count(event.target_tokens_per_update)} target tokens an update planned"
    return f"training starts{again}: {size}, {ranks}, {planned}"


def _slower(event: TrainingStarted) -> list[str]:
    """Whether training goes a slower way than it could."""
    way = {"plain": "plain operations", "fused": "fused kernels without a CUDA graph"}.get(
        event.way, event.way
    )
    return [f"computing with {way}, which is slower: {event.way_reason}"] if event.way_reason else []


def _finished(event: TrainingFinished, state: WatchState) -> str:
    spent = state.spent
    times = (
        f"{duration(spent.training_s)} training",
        f"{duration(spent.evaluation_s)} evaluation",
        f"{duration(spent.checkpoint_s)} waiting for checkpoints",
    )
    return f"training finished at step {count(event.step)}: {event.reason}; {', '.join(times)}"
