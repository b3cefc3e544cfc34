"""Evaluations, checkpoints and probes: what happens now and then, put together from several records each."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from tandem.observe.series.columns import Checkpoint, Evaluation, Marked, Probes
from tandem.observe.series.rounds import Rounds
from tandem.runlog.event import (
    CheckpointRejected,
    CheckpointRemoved,
    CheckpointWritten,
    EvaluationFinished,
    EvaluationStarted,
    LossMeasured,
    ScoreImported,
    TrainingStarted,
    TranslationScored,
)

__all__ = ["fold_checkpoints", "fold_evaluations", "fold_probes"]

_VALID, _PROBE = "valid", "probe"
_SCORED = ("bleu", "bleu_low", "bleu_high", "bleu_signature", "chrf", "sentences", "hypotheses")
_FINISHED = ("duration_s", "is_best_loss", "is_best_bleu")

_UNKNOWN: dict[str, Any] = {
    "valid_loss": math.nan,
    "probe_loss": math.nan,
    "valid_tokens": 0,
    "probe_tokens": 0,
    "bleu": math.nan,
    "bleu_low": math.nan,
    "bleu_high": math.nan,
    "bleu_signature": "",
    "chrf": math.nan,
    "sentences": 0,
    "hypotheses": "",
    "scores": {},
    "duration_s": math.nan,
    "is_best_loss": False,
    "is_best_bleu": False,
}


def fold_evaluations(records: Iterable[Marked]) -> tuple[Evaluation, ...]:
    """Put the leader's records of each evaluation together; of one that was made twice, the last stands."""
    found: dict[int, dict[str, Any]] = {}
    for record in records:
        event = record.event
        match event:
            case TrainingStarted(step=step):
                found = {at: held for at, held in found.items() if at <= step}
            case EvaluationStarted(step=step):
                found[step] = {**_UNKNOWN, "step": step, "time_s": record.time_s}
            case (
                LossMeasured(step=step)
                | TranslationScored(step=step)
                | ScoreImported(step=step)
                | EvaluationFinished(step=step)
            ):
                held = found.setdefault(step, {**_UNKNOWN, "step": step})
                held |= {"time_s": record.time_s, **_learnt(event, held)}
    return tuple(Evaluation(**found[step]) for step in sorted(found))


def _learnt(event: object, held: dict[str, Any]) -> dict[str, Any]:
    match event:
        case LossMeasured(set=name) if name in {_VALID, _PROBE}:
            return {f"{name}_loss": event.loss, f"{name}_tokens": event.target_tokens}
        case TranslationScored(set=name) if name == _VALID:
            return {name: getattr(event, name) for name in _SCORED}
        case ScoreImported():
            return {"scores": {**held["scores"], event.name: event.value}}
        case EvaluationFinished():
            return {name: getattr(event, name) for name in _FINISHED}
    return {}


def fold_checkpoints(records: Iterable[Marked]) -> tuple[Checkpoint, ...]:
    """The checkpoints that the leader wrote, in order; one that was written again is there once, as it was last."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        match record.event:
            case CheckpointWritten() as event:
                found.pop(event.folder, None)
                found[event.folder] = {
                    "step": event.step,
                    "time_s": record.time_s,
                    "folder": event.folder,
                    "bytes": event.bytes,
                    "blocked_s": event.blocked_s,
                    "write_s": event.write_s,
                    "files": event.files,
                    "is_removed": False,
                    "is_rejected": False,
                }
            case CheckpointRemoved(folder=folder) if folder in found:
                found[folder]["is_removed"] = True
            case CheckpointRejected(folder=folder) if folder in found:
                found[folder]["is_rejected"] = True
    return tuple(Checkpoint(**held) for held in found.values())


def fold_probes(held: Mapping[str, Any], rounds: Rounds) -> Probes:
    """Pairs of steps that stand, in order of steps, then of ranks; of one that was measured twice, the last.

    Given are columns with the time and the rank of each.
    """
    order = np.lexsort((held["time_ns"], held["rank"], held["step"]))
    step, rank = held["step"][order], held["rank"][order]
    is_last = np.append((np.diff(step) != 0) | (np.diff(rank) != 0), True)[: len(order)]
    kept = order[is_last & rounds.stands(step, held["time_ns"][order])]
    return Probes(**{each.name: held[each.name][kept] for each in fields(Probes)})
