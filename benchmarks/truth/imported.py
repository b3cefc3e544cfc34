"""Runs of another tool, as their import leaves them: few numbers, no phases, and what its user has seen elsewhere."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.truth.journal import Journal
from benchmarks.truth.labels import Label, Value

from tandem.artefact import JsonValue
from tandem.runlog.event import LossMeasured, RunImported, ScoreImported, StepFinished, TrainingStarted

__all__ = ["Imported", "write_imported"]

_STEP_S = 1.66
_PRINTED = 100
_WARMUP = 8000
_HOST = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A run of Transformer base that printed a line every hundred steps, at 1.66 s each."""

    name: str
    facts: Mapping[str, JsonValue]
    answers: Mapping[str, str]
    """Right verdicts, by question; the rest is labelled by the numbers below."""
    ranks: int = 4
    steps: int = 50_000
    evaluate_every: int = 4001

    @property
    def labels(self) -> Mapping[str, Label]:
        """The given answers, and the step's time, which every log has."""
        step = Label(
            verdicts=frozenset({"measured"}), values=(Value(name="median", truth=_STEP_S, within=0.02),)
        )
        schedule = Label(verdicts=frozenset({"measured"}))
        given = {key: Label(verdicts=frozenset(answer.split(" or "))) for key, answer in self.answers.items()}
        return {"step_time": step, "schedule": schedule, **given}


def write_imported(case: Imported, run: Path) -> None:
    """Write the run folder; it must not be there yet."""
    journal = Journal(run, offset_s=lambda _: 0.0)
    (run / "recipe.yaml").write_text(f"name: {case.name}\n")
    dice = np.random.default_rng(len(case.name))
    journal.rank(0, _imported(case), at_s=0.0, host=_HOST)
    journal.rank(0, _started(case), at_s=0.0, host=_HOST)
    for step in range(_PRINTED, case.steps + 1, _PRINTED):
        journal.rank(0, _step(step, dice), at_s=step * _STEP_S, host=_HOST)
        every = case.evaluate_every
        if every and (number := step // every) > (step - _PRINTED) // every:
            for event in _evaluation(number * every, dice):
                journal.rank(0, event, at_s=step * _STEP_S, host=_HOST)
    journal.close()


def _loss(step: int) -> float:
    return 1.25 + 7.5 * math.pow(1 + step / 900, -0.8)


def _rate(step: int) -> float:
    return 2.0 / math.sqrt(512) * min(1 / math.sqrt(step), step / _WARMUP / math.sqrt(_WARMUP))


def _imported(case: Imported) -> RunImported:
    facts: dict[str, JsonValue] = {
        "pairs_per_gpu": 128,
        "precision": "fp32",
        "vocabulary": 32_768,
        "save_checkpoint_steps": 299_998,
        "eval_steps": case.evaluate_every or 4001,
        "max_steps": 300_000,
        "optimizer": "Adam",
        "schedule": {"policy": "transformer", "learning_rate": 2.0, "d_model": 512, "warmup_steps": _WARMUP},
        "reported_parameters": 60_880_896,
        **case.facts,
    }
    return RunImported(tool="openseq2seq", files=("train.log",), times="steps", step_kind="mean", facts=facts)


def _started(case: Imported) -> TrainingStarted:
    return TrainingStarted(
        step=0,
        tokens=0,
        resumed_from="",
        parameters=60_880_896,
        ranks=case.ranks,
        device="cuda",
        precision="fp32",
        layout="",
        source_capacity=0,
        target_capacity=0,
        updates_per_epoch=0,
        pairs=0,
        max_steps=300_000,
        schedule=f"transformer: 2 · 512^-0.5 · min(step^-0.5, step · {_WARMUP}^-1.5)",
        target_tokens_per_update=0,
    )


def _step(step: int, dice: np.random.Generator) -> StepFinished:
    return StepFinished(
        step=step,
        epoch=0,
        loss=_loss(step) + float(dice.normal(0, 0.08)),
        nll=math.nan,
        learning_rate=_rate(step),
        gradient_norm=math.nan,
        loss_scale=1.0,
        skipped=False,
        target_tokens=0,
        source_tokens=0,
        pairs=0,
        batches=0,
        duration_s=round(_STEP_S * math.exp(dice.normal(0, 0.012)), 3),
        phases={},
        split=0,
    )


def _evaluation(step: int, dice: np.random.Generator) -> tuple[LossMeasured, ScoreImported]:
    loss = LossMeasured(
        step=step,
        set="valid",
        loss=_loss(step) + float(dice.normal(0, 0.008)),
        target_tokens=0,
        pairs=0,
        duration_s=math.nan,
    )
    score = ScoreImported(
        step=step,
        set="valid",
        name="Eval_BLEU_Score",
        value=0.4 * (1 - (1 + step / 3000) ** -1.0) + float(dice.normal(0, 0.003)),
        meaning="of teacher-forced arg-max over pieces: no BLEU of translations",
    )
    return loss, score
