"""Run logs made up for tests."""

from collections.abc import Sequence
from pathlib import Path

from tandem.runlog.event import Event, StepFinished, TrainingStarted
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

__all__ = ["started", "step", "write_log"]


def started() -> TrainingStarted:
    return TrainingStarted(
        step=0,
        tokens=0,
        resumed_from="",
        parameters=7,
        ranks=1,
        device="cpu",
        precision="fp32",
        layout="packed",
        source_capacity=64,
        target_capacity=128,
        updates_per_epoch=3,
        pairs=9,
        max_steps=5,
        schedule="",
        target_tokens_per_update=100,
    )


def step(number: int, *, tokens: int, seconds: float) -> StepFinished:
    return StepFinished(
        step=number,
        epoch=0,
        loss=2.0,
        nll=1.0,
        learning_rate=0.1,
        gradient_norm=1.0,
        loss_scale=1.0,
        skipped=False,
        target_tokens=tokens,
        source_tokens=tokens,
        pairs=3,
        batches=1,
        duration_s=seconds,
        phases={"data": 0.25 * seconds, "forward": 0.75 * seconds},
        split=0,
    )


def write_log(run: Path, happened: Sequence[tuple[float, Event]]) -> Path:
    """The log of rank 0: what happened, and at what second."""
    folder = RunLayout(run).log
    folder.mkdir(parents=True)
    lines = [
        to_line(Record(time_ns=0, clock_s=clock_s, rank=0, sequence=number, event=event))
        for number, (clock_s, event) in enumerate(happened)
    ]
    (folder / "rank-00000.jsonl").write_bytes(b"".join(lines))
    return run
