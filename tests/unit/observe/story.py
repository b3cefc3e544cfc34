"""A run told as records: what happens is chosen by a test, and time goes on by itself."""

import math
from collections.abc import Iterator
from pathlib import Path

from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    LossMeasured,
    RunStarted,
    SampleTranslated,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
    TranslationScored,
)
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

START_NS = 1_767_225_600_000_000_000
STEP_S = 0.25
TOKENS = 25_000
RUN_STARTED = RunStarted(
    run="first", tandem="1", command=(), recipe="f", world_size=2, host="h", python="3", torch="2"
)


class Teller:
    """Puts events on record, one after the other."""

    def __init__(self, start_ns: int = START_NS) -> None:
        self.time_ns = start_ns
        self._sequence = 0

    def tell(self, event: Event, *, after_s: float = 0.0, rank: int | None = 0) -> Record:
        self.time_ns += max(1, int(after_s * 1e9))
        self._sequence += 1
        host = "alpha" if rank is None else None
        return Record(
            time_ns=self.time_ns, clock_s=0.0, rank=rank, host=host, sequence=self._sequence, event=event
        )

    def step(self, number: int, *, rank: int = 0, loss: float | None = None, skipped: bool = False) -> Record:
        event = step_event(number, loss=loss, skipped=skipped)
        return self.tell(event, after_s=STEP_S if rank == 0 else 0.0, rank=rank)

    def evaluation(self, step: int, *, best_loss: bool = True, best_bleu: bool = True) -> Iterator[Record]:
        yield self.tell(EvaluationStarted(step=step))
        loss = 2 + 4 * math.exp(-step / 500) + (0.0 if best_loss else 0.5)
        for name, value in (("valid", loss), ("probe", loss - 0.125)):
            yield self.tell(
                LossMeasured(
                    step=step, set=name, loss=value, target_tokens=81_204, pairs=3_000, duration_s=1.0
                ),
                after_s=1.0,
            )
        yield self.tell(scores(step), after_s=8.0)
        for number, (source, reference, hypothesis) in enumerate(SAMPLES):
            yield self.tell(
                SampleTranslated(
                    step=step,
                    set="valid",
                    number=number,
                    source=source,
                    reference=reference,
                    hypothesis=hypothesis,
                )
            )
        yield self.tell(
            EvaluationFinished(step=step, duration_s=10.0, is_best_loss=best_loss, is_best_bleu=best_bleu)
        )


SAMPLES = (
    (
        "The harbour master closed the northern gate before the storm.",
        "Der Hafenmeister schloss das Nordtor vor dem Sturm.",
        "Der Hafenmeister schloss das Nordtor vor dem Sturm.",
    ),
    (
        "Why did she sell the bicycle?",
        "Warum hat sie das Fahrrad verkauft?",
        "Warum verkaufte sie das Fahrrad?",
    ),
)


def scores(step: int, name: str = "valid") -> TranslationScored:
    return TranslationScored(
        step=step,
        set=name,
        bleu=30 - 28 * math.exp(-step / 500),
        bleu_signature="nrefs:1",
        chrf=55 - 30 * math.exp(-step / 500),
        chrf_signature="nrefs:1",
        sentences=3_000,
        hypotheses=f"hypotheses/step-{step:08d}/{name}.txt",
        duration_s=8.0,
    )


def started(
    step: int = 0,
    *,
    max_steps: int = 1_000,
    max_tokens: int = 0,
    max_minutes: float = 0.0,
    way_reason: str = "",
) -> TrainingStarted:
    return TrainingStarted(
        step=step,
        tokens=step * TOKENS,
        resumed_from=f"checkpoints/step-{step:08d}" if step else "",
        parameters=60_880_896,
        ranks=2,
        device="cuda",
        precision="bf16",
        layout="packed",
        source_capacity=24_576,
        target_capacity=24_576,
        updates_per_epoch=300,
        pairs=270_000,
        max_steps=max_steps,
        schedule="constant",
        target_tokens_per_update=TOKENS,
        max_tokens=max_tokens,
        max_minutes=max_minutes,
        way="plain" if way_reason else "graph",
        way_reason=way_reason,
    )


def step_event(
    number: int, *, loss: float | None = None, skipped: bool = False, tokens: int = TOKENS
) -> StepFinished:
    value = 3 + 6 * math.exp(-number / 150) if loss is None else loss
    phases = {
        "data": 0.005,
        "forward": 0.06,
        "backward": 0.12,
        "exchange": 0.03,
        "optimizer": 0.015,
        "other": 0.02,
    }
    return StepFinished(
        step=number,
        epoch=(number - 1) // 300,
        loss=value,
        nll=value - 1,
        learning_rate=7e-4 * min(1.0, number / 400),
        gradient_norm=0.75,
        loss_scale=1.0,
        skipped=skipped,
        target_tokens=tokens,
        source_tokens=24_000,
        pairs=900,
        batches=4,
        duration_s=STEP_S,
        phases=phases,
        split=0,
    )


def checkpoint(step: int) -> CheckpointWritten:
    return CheckpointWritten(
        step=step,
        folder=f"checkpoints/step-{step:08d}",
        bytes=730_577_104,
        blocked_s=0.5,
        write_s=2.5,
        files={"model.safetensors": 243_525_712},
    )


def finished(step: int) -> TrainingFinished:
    return TrainingFinished(
        step=step, tokens=step * TOKENS, reason=f"reached {step:,} steps", duration_s=300.0
    )


def training(teller: Teller, *, steps: int, every: int = 200) -> Iterator[Record]:
    """A run with evaluations and checkpoints; the loss on valid is best at the evaluation before the last."""
    yield teller.tell(started())
    last = steps // every * every
    for number in range(1, steps + 1):
        yield teller.step(number)
        if number % every == 0:
            yield from teller.evaluation(number, best_loss=number != last)
            yield teller.tell(checkpoint(number))


def write_log(run: Path, records: list[Record]) -> None:
    """Append the records to the files of their writers."""
    layout = RunLayout(run)
    layout.log.mkdir(parents=True, exist_ok=True)
    for record in records:
        path = layout.host_log("alpha") if record.rank is None else layout.rank_log(record.rank)
        with path.open("ab") as file:
            file.write(to_line(record))
