"""A run as plain lines, for a file or a terminal that cannot draw."""

import math

from tandem.observe.numbers import count, duration, megabytes, short_count
from tandem.observe.watch.progress import progress_of
from tandem.observe.watch.state import Evaluation, WatchState
from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    Event,
    RunFinished,
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
        self._has_told_end = False

    def lines(self, record: Record, state: WatchState) -> list[str]:
        """What to print about a record that the state has taken."""
        if record.rank not in (None, 0):
            return []
        match record.event:
            case StepFinished():
                return self._step(record, state)
            case EvaluationFinished():
                return [_evaluated(state.evaluations[-1]), *_sample(state, record.event.step)]
            case RunFinished(reason=reason):
                was_told, self._has_told_end = self._has_told_end, True
                return [] if was_told else [f"run finished: {reason}"]
            case event:
                if isinstance(event, TrainingStarted | TrainingFinished):
                    self._has_told_end = isinstance(event, TrainingFinished)
                return _told(event, state)

    def _step(self, record: Record, state: WatchState) -> list[str]:
        pause_s = min(LONGEST_S, max(SHORTEST_S, PART * state.spent.total_s))
        if record.time_ns - self._told_ns < pause_s * NANO:
            return []
        self._told_ns = record.time_ns
        return [_stepped(state)]


def _stepped(state: WatchState) -> str:
    progress, recent, last = progress_of(state), state.recent, state.recent.last
    parts = [f"step {count(state.step)}" if progress is None else f"{progress.text} ({progress.share:.0%})"]
    parts += [
        f"epoch {state.epoch + 1}",
        f"loss {recent.loss:.3f}",
        f"{recent.tokens_per_s:,.0f} target tokens/s",
    ]
    if last is not None:
        parts += [f"learning rate {last.learning_rate:.2e}", f"gradient norm {last.gradient_norm:.2f}"]
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
        case TrainingStarted():
            return [_started(event), *_slower(event)]
        case CheckpointWritten():
            size, waited = megabytes(event.bytes), duration(event.blocked_s)
            return [
                f"checkpoint {event.folder}: {size} in {duration(event.write_s)}, training waited {waited}"
            ]
        case TrainingFinished():
            return [_finished(event, state)]
    return []


def _started(event: TrainingStarted) -> str:
    ranks = f"{event.ranks} rank{'s' if event.ranks > 1 else ''} ({event.device} {event.precision})"
    size = f"{short_count(event.parameters)} parameters"
    if event.resumed_from:
        return f"training goes on after step {count(event.step)} from {event.resumed_from}: {size}, {ranks}"
    return (
        f"training starts: {size}, {ranks}, {count(event.target_tokens_per_update)} target tokens an update"
    )


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
