"""Tandem's side of the measurement of training on a GPU: the whole command, and its step with nothing around it."""

import shlex
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from benchmarks.gpu.anatomy import take_apart
from benchmarks.gpu.corpus import TANDEM
from benchmarks.switched import SwitchedTrainer

from tandem.config import load_recipe
from tandem.data.batches.stream import BatchStream, UpdateBatches
from tandem.runlog.event import CheckpointWritten, StepFinished, TrainingStarted
from tandem.runlog.reader import read_records
from tandem.runlog.record import Record
from tandem.train.asked import Asked

__all__ = ["BareJob", "RunJob", "measure_bare", "measure_run", "read_checkpoints", "read_run"]

_UPDATES = 8
"""Updates that the bare step turns over: enough for their mean to be the text's."""
_BLOCKS = 5
_PROFILED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """A whole run, whose first `warmup` steps do not count."""

    recipe: Path
    run: Path
    device: str
    steps: int
    warmup: int
    checkpoint_steps: int
    overrides: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BareJob:
    """The run's step on updates that are loaded already; `steps` of them are timed."""

    recipe: Path
    run: Path
    device: str
    steps: int
    warmup: int
    overrides: Sequence[str] = ()


def measure_run(job: RunJob) -> dict[str, Any]:
    """Train by the command line into a new folder, and read the log."""
    shutil.rmtree(job.run, ignore_errors=True)
    values = [
        f"train.max_steps={job.steps}",
        f"checkpoint.every_steps={job.checkpoint_steps}",
        *job.overrides,
    ]
    where = ["--run", str(job.run), "--workers", "1", "--device", job.device, "--plain"]
    command = [*TANDEM, "train", str(job.recipe), *values, *where]
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr)[-3000:])
    words = [Path(word).name if word.startswith("/") else word for word in command]
    return {
        "command": shlex.join(words),
        "wall_s": round(time.monotonic() - begun, 1),
        **read_run(job.run, warmup=job.warmup),
        **read_checkpoints(job.run, warmup=job.warmup),
    }


def read_run(run: Path, *, warmup: int) -> dict[str, Any]:
    """Return what the log of a finished run says of the steps after its warm-up."""
    records = [record for record in read_records(run) if record.rank == 0]
    begun_s, facts = next(
        (record.clock_s, record.event) for record in records if isinstance(record.event, TrainingStarted)
    )
    steps = [(record, record.event) for record in records if isinstance(record.event, StepFinished)]
    counted = [step for _, step in steps if step.step > warmup]
    full = _full_speed([record for record, step in steps if step.step > warmup])
    phases = {
        name: round(1e3 * statistics.mean(step.phases[name] for step in counted), 3)
        for name in counted[0].phases
    }
    return {
        "device": facts.device,
        "precision": facts.precision,
        "layout": facts.layout,
        "parameters": facts.parameters,
        "capacity": [facts.source_capacity, facts.target_capacity],
        "target_tokens_per_s": round(
            statistics.median(step.target_tokens / step.duration_s for step in counted), 1
        ),
        **full,
        "steps": len(counted),
        "target_tokens_per_update": round(statistics.mean(step.target_tokens for step in counted), 1),
        "batches_per_update": round(statistics.mean(step.batches for step in counted), 3),
        "step_ms": round(1e3 * statistics.median(step.duration_s for step in counted), 3),
        "phases_ms": phases,
        "first_step_s": round(steps[0][0].clock_s - begun_s, 2),
        "skipped": sum(step.skipped for step in counted),
        "last_loss": round(counted[-1].loss, 4),
    }


def _full_speed(records: Sequence[Record]) -> dict[str, Any]:
    """By the clock on the wall from the first to the last of these steps, whatever happened in between."""
    events = [record.event for record in records if isinstance(record.event, StepFinished)]
    seconds = records[-1].clock_s - records[0].clock_s
    tokens = sum(event.target_tokens for event in events[1:])
    return {"full_target_tokens_per_s": round(tokens / seconds, 1), "full_s": round(seconds, 2)}


def read_checkpoints(run: Path, *, warmup: int) -> dict[str, Any]:
    """Return what the log says of the checkpoints among the steps that count."""
    events = [record.event for record in read_records(run) if record.rank == 0]
    last = max(event.step for event in events if isinstance(event, StepFinished))
    held = [event for event in events if isinstance(event, CheckpointWritten) and warmup < event.step < last]
    return {
        "checkpoints": len(held),
        "blocked_s": [round(event.blocked_s, 3) for event in held],
        "write_s": [round(event.write_s, 2) for event in held],
        "bytes": held[-1].bytes if held else 0,
    }


def measure_bare(job: BareJob) -> dict[str, Any]:
    """Time the step that the run makes, without loader, log, clock or checkpoints; then take it apart."""
    recipe = load_recipe(job.recipe, job.overrides).recipe
    shutil.rmtree(job.run, ignore_errors=True)
    trainer = SwitchedTrainer.build(job.run, recipe, job.device)
    try:
        return _measure_steps(trainer, job)
    finally:
        trainer.store.close()


def _measure_steps(trainer: SwitchedTrainer, job: BareJob) -> dict[str, Any]:
    device = trainer.place.world.device
    updates = _load(trainer, device)
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        trainer.untimed.step(updates[count % len(updates)], step=count, asked=Asked())

    for _ in range(max(job.warmup, len(updates))):
        step()
    # Whole turns of the updates, so that every block holds the same tokens.
    turns = max(1, round(job.steps / _BLOCKS / len(updates)))
    blocks = [_time(step, turns * len(updates), device) for _ in range(_BLOCKS)]
    step_s = statistics.median(blocks)
    tokens = statistics.mean(update.target_tokens for update in updates)
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return {
        "target_tokens_per_s": round(tokens / step_s, 1),
        "target_tokens_per_update": round(tokens, 1),
        "step_ms": round(1e3 * step_s, 3),
        "step_ms_of_blocks": [round(1e3 * each, 3) for each in blocks],
        "steps_a_block": turns * len(updates),
        "peak_memory_bytes": peak,
        "anatomy": take_apart(step, steps=_PROFILED, device=device),
    }


def _load(trainer: SwitchedTrainer, device: torch.device) -> list[UpdateBatches]:
    stream = BatchStream(
        trainer.data.plan, start=trainer.start.cursor, shape=trainer.shape, device=str(device)
    )
    with stream:
        return list(islice(stream, _UPDATES))


def _time(step: Any, steps: int, device: torch.device) -> float:
    """Seconds a step, from an idle device until it is idle again."""
    _settle(device)
    begun = time.perf_counter()
    for _ in range(steps):
        step()
    _settle(device)
    return (time.perf_counter() - begun) / steps


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
