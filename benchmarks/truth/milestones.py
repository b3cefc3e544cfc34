"""What befalls a simulated run between its steps: probes, evaluations, checkpoints, its end."""

import math

import numpy as np
from benchmarks.truth.surroundings import checkpoint_files
from benchmarks.truth.telling import Telling
from benchmarks.truth.timing import Probe

from tandem.runlog.event import (
    CheckpointFailed,
    CheckpointRemoved,
    CheckpointWritten,
    EvaluationFinished,
    EvaluationStarted,
    ExchangeProbed,
    LossMeasured,
    RunFinished,
    StopAsked,
    TrainingFinished,
    TranslationScored,
)

__all__ = ["tell_checkpoint", "tell_end", "tell_evaluation", "tell_probe"]


def tell_probe(telling: Telling, step: int, probe: Probe, *, at_s: float) -> None:
    """Say what each rank measured with and without exchange."""
    waited = telling.timing.exchange_s[probe.at]
    for rank in range(telling.logged):
        event = ExchangeProbed(
            step=step,
            synchronised_s=round(float(probe.synchronised_s[rank]), 6),
            unsynchronised_s=round(float(probe.unsynchronised_s[rank]), 6),
            exchange_s=round(float(waited[rank]), 6),
        )
        telling.journal.rank(rank, event, at_s=at_s + 0.001, host=telling.host(rank))


def tell_evaluation(telling: Telling, number: int, *, at_s: float) -> None:
    """Say what an evaluation saw; training stands still for it."""
    scenario, plan, judged = telling.scenario, telling.scenario.plan, telling.judged
    journal, head, step = telling.journal, telling.hosts[0], int(judged.step[number])
    lasted = plan.evaluation_s
    journal.rank(0, EvaluationStarted(step=step), at_s=at_s, host=head)
    losses = {"valid": float(judged.valid[number])}
    if scenario.seen.probe_losses:
        losses["probe"] = float(judged.probe[number])
    for name, loss in losses.items():
        tokens = scenario.learning.valid_tokens if name == "valid" else plan.probe_pairs * 30
        event = LossMeasured(
            step=step, set=name, loss=loss, target_tokens=tokens, pairs=tokens // 30, duration_s=0.1 * lasted
        )
        journal.rank(0, event, at_s=at_s + 0.2 * lasted, host=head)
    if plan.scores:
        _tell_score(telling, number, at_s=at_s + 0.9 * lasted)
    finished = EvaluationFinished(
        step=step,
        duration_s=lasted,
        is_best_loss=bool(judged.valid[number] <= np.nanmin(judged.valid[: number + 1])),
        is_best_bleu=plan.scores and bool(judged.bleu[number] >= judged.bleu[: number + 1].max()),
    )
    journal.rank(0, finished, at_s=at_s + lasted, host=head)
    telling.shift_s += lasted + 0.02


def _tell_score(telling: Telling, number: int, *, at_s: float) -> None:
    learning, judged = telling.scenario.learning, telling.judged
    bleu, sentences = float(judged.bleu[number]), learning.valid_tokens // 30
    wide = 0.9 * math.sqrt(2000 / sentences)
    scored = TranslationScored(
        step=int(judged.step[number]),
        set="valid",
        bleu=bleu,
        bleu_signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.5.1",
        chrf=min(99.0, bleu * 1.1 + 25),
        chrf_signature="nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.5.1",
        sentences=sentences,
        hypotheses=f"hypotheses/step-{int(judged.step[number]):08d}/valid.txt",
        duration_s=0.7 * telling.scenario.plan.evaluation_s,
        bleu_low=max(0.0, bleu - wide),
        bleu_high=bleu + wide,
    )
    telling.journal.rank(0, scored, at_s=at_s, host=telling.hosts[0])


def tell_checkpoint(telling: Telling, step: int, *, at_s: float) -> None:
    """Write a checkpoint, or fail to, and remove the oldest."""
    plan, journal, head = telling.scenario.plan, telling.journal, telling.hosts[0]
    telling.saves += 1
    telling.shift_s += plan.blocked_s
    if 0 <= plan.save_fails_after < telling.saves:
        failed = CheckpointFailed(step=step, reason="No space left on device")
        journal.rank(0, failed, at_s=at_s + plan.blocked_s, host=head)
        return
    files, folder = checkpoint_files(telling.scenario), f"checkpoints/step-{step:08d}"
    written = CheckpointWritten(
        step=step,
        folder=folder,
        bytes=sum(files.values()),
        blocked_s=plan.blocked_s,
        write_s=plan.blocked_s * 4,
        files=files,
    )
    journal.rank(0, written, at_s=at_s + plan.blocked_s, host=head)
    telling.saved = (*telling.saved, step)
    if len(telling.saved) > plan.keep:
        gone, telling.saved = telling.saved[0], telling.saved[1:]
        removed = CheckpointRemoved(step=gone, folder=f"checkpoints/step-{gone:08d}")
        journal.rank(0, removed, at_s=at_s + plan.blocked_s + 0.005, host=head)


def tell_end(telling: Telling, at_s: float) -> float:
    """End as the plan has it; returns when the last record was written."""
    scenario, plan, journal, head = telling.scenario, telling.scenario.plan, telling.journal, telling.hosts[0]
    if plan.ending in {"running", "killed"}:
        return at_s
    reason = f"reached {plan.max_steps:,} steps" if plan.ending == "finished" else "asked to stop (SIGINT)"
    if plan.ending == "stopped":
        journal.rank(0, StopAsked(signal="SIGINT"), at_s=at_s + 0.1, host=head)
    done = TrainingFinished(
        step=plan.steps, tokens=plan.steps * scenario.tokens, reason=reason, duration_s=at_s
    )
    journal.rank(0, done, at_s=at_s + 0.5, host=head)
    for rank in range(telling.logged):
        journal.rank(rank, RunFinished(reason=reason), at_s=at_s + 0.6, host=telling.host(rank))
    journal.host(head, RunFinished(reason="completed"), at_s=at_s + 1.0)
    return at_s + 1.0
