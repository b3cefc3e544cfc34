"""Tandem's own side of the measurement of training."""

import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import Stages
from benchmarks.trainers.trainer import (
    LONGEST,
    UPDATE_TOKENS,
    Speed,
    Trainer,
    TrainJob,
    average_speed,
    threaded,
)

from tandem.runlog.event import StepFinished
from tandem.runlog.reader import read_records

__all__ = ["RECIPE", "TANDEM", "TANDEM_RANKS"]

RECIPE = {
    "name": "bench",
    "data": {"train": [{"source": "train.en", "target": "train.de"}], "folder": "prepared"},
    "subword": {"vocabulary": 32_768, "max_pieces": LONGEST},
    "batch": {"target_tokens": UPDATE_TOKENS},
    "model": {"preset": "small"},
    "train": {"precision": "fp32"},
}
"""What is trained; it lies beside the text."""


def _stages(job: TrainJob, *, workers: int) -> Stages:
    tandem = str(Path(sys.executable).with_name("tandem"))
    command = [tandem, "train", "../text/recipe.yaml", f"train.max_steps={job.steps}"]
    where = ["--run", "run", "--workers", str(workers), "--device", "cpu"]
    return [[threaded(job.threads // workers, [*command, *where])]]


def _read_speed(job: TrainJob) -> Speed:
    finished = [
        record.event
        for record in read_records(job.out / "run")
        if isinstance(record.event, StepFinished) and record.rank == 0 and record.event.step > job.warmup
    ]
    return average_speed(
        tokens=sum(step.target_tokens for step in finished),
        seconds=sum(step.duration_s for step in finished),
        steps=len(finished),
    )


TANDEM = Trainer(
    name="tandem",
    version=version("tandem-nmt"),
    does="one rank with all threads, padded batches of similar length; logs every step",
    stages=partial(_stages, workers=1),
    speed=_read_speed,
)
TANDEM_RANKS = Trainer(
    name="tandem, two ranks",
    version=version("tandem-nmt"),
    does="the same updates on two ranks that share the threads",
    stages=partial(_stages, workers=2),
    speed=_read_speed,
)
