"""Small series for tests of verdicts: a plain healthy run, of which each test changes what it is about."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.observe.series.columns import (
    PHASES,
    Checkpoint,
    Evaluation,
    HostSamples,
    Marked,
    Probes,
    RankSteps,
    Series,
    Steps,
)
from tandem.runlog.event import (
    EvaluationFinished,
    EvaluationStarted,
    HostDescribed,
    RunImported,
    RunStarted,
    TrainingFinished,
    TrainingStarted,
)

START_S = 5.0
"""When training starts in a default series; its first step ends one step later."""
TOKENS = 25_000

SHARES = {
    "data": 0.01,
    "forward": 0.29,
    "backward": 0.55,
    "exchange": 0.10,
    "optimizer": 0.03,
    "other": 0.02,
}
"""How a default step is spent."""


def rate(step: NDArray[np.float64], *, peak: float = 7e-4, warmup: int = 400) -> NDArray[np.float64]:
    """The learning rate of the default recipe."""
    return np.asarray(peak * np.minimum(step / warmup, np.sqrt(warmup / step)))


def build_steps(
    count: int = 1000,
    *,
    duration_s: ArrayLike = 0.5,
    loss: ArrayLike | None = None,
    learning_rate: ArrayLike | None = None,
    first: int = 1,
    every: int = 1,
    **columns: Any,
) -> Steps:
    """`count` steps of `duration_s` each, one value or one a step; other columns by name."""
    step = first + every * np.arange(count, dtype=np.int64)
    number = np.maximum(step, 1).astype(np.float64)
    durations = np.broadcast_to(np.asarray(duration_s, np.float64), (count,)).copy()
    losses = 2.0 + 8.0 * number**-0.3 if loss is None else np.broadcast_to(loss, (count,))
    rates = rate(number) if learning_rate is None else np.broadcast_to(learning_rate, (count,))
    whole = {
        "step": step,
        "time_s": START_S + np.cumsum(durations * every),
        "epoch": np.zeros(count, np.int64),
        "loss": np.asarray(losses, np.float64),
        "nll": np.asarray(losses, np.float64) - 0.75,
        "learning_rate": np.asarray(rates, np.float64),
        "gradient_norm": np.full(count, 0.75),
        "skipped": np.zeros(count, np.bool_),
        "target_tokens": np.full(count, TOKENS, np.int64),
        "source_tokens": np.full(count, TOKENS - 1000, np.int64),
        "pairs": np.full(count, 900, np.int64),
        "duration_s": durations,
    }
    return Steps(**{**whole, **columns})


def build_ranks(
    steps: Steps,
    *,
    ranks: int = 2,
    hosts: Sequence[str] | None = None,
    phases: Mapping[str, ArrayLike] | None = None,
    sent_bytes: float = 240e6,
) -> RankSteps:
    """Ranks that spend the steps alike; `phases` in seconds, one value or anything that fits ranks x steps."""
    shape = (ranks, len(steps))
    spent = (
        {name: np.float32(SHARES[name] * steps.duration_s) for name in PHASES} if phases is None else phases
    )
    return RankSteps(
        duration_s=np.broadcast_to(np.asarray(steps.duration_s, np.float32), shape).copy(),
        phases={
            name: np.broadcast_to(np.asarray(spent.get(name, 0.0), np.float32), shape).copy()
            for name in PHASES
        },
        sent_bytes=np.full(shape, sent_bytes, np.float32),
        hosts=tuple(hosts) if hosts is not None else ("alpha",) * ranks,
    )


def build_evaluations(
    steps: Sequence[int],
    valid: Sequence[float],
    *,
    probe: Sequence[float] | None = None,
    bleu: Sequence[float] | None = None,
    half: float = math.nan,
    step_s: float = 0.5,
    **fields: Any,
) -> tuple[Evaluation, ...]:
    """Evaluations after these steps; `half` is half the width of BLEU's interval."""
    bleus = bleu if bleu is not None else [math.nan] * len(steps)
    probes = probe if probe is not None else [math.nan] * len(steps)
    blank = Evaluation(
        step=0,
        time_s=0.0,
        valid_loss=math.nan,
        probe_loss=math.nan,
        valid_tokens=80_000,
        probe_tokens=80_000 if probe is not None else 0,
        bleu=math.nan,
        bleu_low=math.nan,
        bleu_high=math.nan,
        bleu_signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
        if bleu is not None
        else "",
        chrf=math.nan,
        sentences=3000 if bleu is not None else 0,
        hypotheses="",
        scores={},
        duration_s=2.0,
        is_best_loss=False,
        is_best_bleu=False,
    )
    found = []
    for number, step in enumerate(steps):
        scored = bleus[number]
        each = replace(
            blank,
            step=step,
            time_s=START_S + step * step_s + 2.0 * (number + 1),
            valid_loss=valid[number],
            probe_loss=probes[number],
            bleu=scored,
            bleu_low=scored - half,
            bleu_high=scored + half,
            is_best_loss=valid[number] <= min(valid[: number + 1]),
            is_best_bleu=scored >= max(bleus[: number + 1]),
        )
        found.append(replace(each, **fields))
    return tuple(found)


def build_marks(evaluations: Sequence[Evaluation]) -> tuple[Marked, ...]:
    """The marks that evaluations leave."""
    marks: list[Marked] = []
    for each in evaluations:
        begun = EvaluationStarted(step=each.step)
        ended = EvaluationFinished(
            step=each.step,
            duration_s=each.duration_s,
            is_best_loss=each.is_best_loss,
            is_best_bleu=each.is_best_bleu,
        )
        marks.append(Marked(time_s=each.time_s - each.duration_s, rank=0, host=None, event=begun))
        marks.append(Marked(time_s=each.time_s, rank=0, host=None, event=ended))
    return tuple(marks)


def build_start(**fields: Any) -> TrainingStarted:
    """The start of a new training on two ranks."""
    whole: dict[str, Any] = {
        "step": 0,
        "tokens": 0,
        "resumed_from": "",
        "parameters": 60_880_896,
        "ranks": 2,
        "device": "NVIDIA V100",
        "precision": "fp16",
        "layout": "packed",
        "source_capacity": 12_500,
        "target_capacity": 12_500,
        "updates_per_epoch": 4800,
        "pairs": 4_500_000,
        "max_steps": 1000,
        "schedule": "inverse_sqrt: 0.0007 · min(step / 400, (400 / step)^0.5)",
        "target_tokens_per_update": TOKENS,
        "flops_per_target_token": 3.65e8,
        "gradient_bytes": 243_523_584,
    }
    return TrainingStarted(**{**whole, **fields})


def build_process(rank: int = 0, *, host: str = "alpha", world_size: int = 2) -> RunStarted:
    """A rank that began to work."""
    return RunStarted(
        run="story",
        tandem="0.1.0",
        command=("tandem", "train"),
        recipe="9f86d081884c7d65",
        world_size=world_size,
        host=host,
        python="3.11.9",
        torch="2.13.0",
    )


def build_imported(facts: Mapping[str, Any] | None = None, **fields: Any) -> RunImported:
    """A run of another tool, whose points stand for a hundred steps each."""
    whole: dict[str, Any] = {
        "tool": "openseq2seq",
        "files": ("train.log",),
        "times": "steps",
        "step_kind": "mean",
        "facts": dict(facts or {}),
    }
    return RunImported(**{**whole, **fields})


def build_probes(*rows: tuple[int, int, float, float, float]) -> Probes:
    """Rows of step, rank, synchronised, unsynchronised and exchange seconds."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    return Probes(
        step=np.asarray(columns[0], np.int64),
        rank=np.asarray(columns[1], np.int64),
        synchronised_s=np.asarray(columns[2], np.float64),
        unsynchronised_s=np.asarray(columns[3], np.float64),
        exchange_s=np.asarray(columns[4], np.float64),
    )


def build_samples(
    count: int = 500,
    *,
    gpus: int = 1,
    interfaces: Sequence[str] = ("lo", "eth0"),
    bits_per_s: Sequence[int] = (0, 1_000_000_000),
    begin_s: float = START_S,
    **columns: Any,
) -> HostSamples:
    """A host sampled once a second, that does next to nothing but what is given by name."""
    described = HostDescribed(
        cores=16,
        memory_bytes=64 * 10**9,
        gpus=("NVIDIA V100",) * gpus,
        gpu_memory_bytes=(16 * 10**9,) * gpus,
        gpu_power_limit_w=(300.0,) * gpus,
        interfaces=tuple(interfaces),
        interface_bits_per_s=tuple(bits_per_s),
        disk="sda1",
    )

    def filled(value: float, rows: int | None = None) -> NDArray[np.float32]:
        return np.full(count if rows is None else (rows, count), value, np.float32)

    whole: dict[str, Any] = {
        "described": described,
        "time_s": begin_s + np.arange(count, dtype=np.float64),
        "seconds": filled(1.0),
        "cpu": filled(0.25),
        "memory_bytes": np.full(count, 8e9),
        "disk_free_bytes": np.full(count, 500e9),
        "disk_read_bytes_per_s": filled(0.0),
        "disk_written_bytes_per_s": filled(0.0),
        "retransmitted": filled(0.0),
        "gpu_utilisation": filled(1.0, gpus),
        "gpu_memory_bytes": np.full((gpus, count), 12e9),
        "gpu_power_w": filled(250.0, gpus),
        "gpu_clock_mhz": filled(1380.0, gpus),
        "gpu_temperature_c": filled(60.0, gpus),
        "gpu_throttled": np.zeros((gpus, count), np.bool_),
        "gpu_capped": np.zeros((gpus, count), np.bool_),
        "received_bytes_per_s": filled(0.0, len(interfaces)),
        "sent_bytes_per_s": filled(0.0, len(interfaces)),
        "packets_per_s": filled(0.0, len(interfaces)),
        "dropped": filled(0.0, len(interfaces)),
    }
    return HostSamples(**{**whole, **columns})


def build_recipe(**optim: Any) -> dict[str, Any]:
    """The parts of a recipe that verdicts read."""
    return {
        "model": {"width": 512},
        "optim": {
            "schedule": "inverse_sqrt",
            "learning_rate": 7e-4,
            "warmup_steps": 400,
            "cooldown_steps": 0,
            **optim,
        },
        "train": {"max_steps": 1000, "label_smoothing": 0.1},
        "evaluate": {"every_steps": 200},
    }


def build_checkpoint(step: int = 1000, **fields: Any) -> Checkpoint:
    """A checkpoint of the default model."""
    files = {
        "model.safetensors": 243_525_712,
        "optimizer.safetensors": 487_051_392,
        "manifest.json": 1053,
        "recipe.yaml": 1452,
        "state.json": 400,
        "subword.model": 800_000,
    }
    whole: dict[str, Any] = {
        "step": step,
        "time_s": START_S + step * 0.5 + 4.0,
        "folder": f"checkpoints/step-{step:08d}",
        "bytes": sum(files.values()),
        "blocked_s": 0.125,
        "write_s": 2.5,
        "files": files,
        "is_removed": False,
        "is_rejected": False,
    }
    return Checkpoint(**{**whole, **fields})


def build_series(**parts: Any) -> Series:
    """A run of 1,000 steps on two ranks that ended in good order; any field of Series can be given instead."""
    steps: Steps = parts.get("steps") or build_steps()
    started = build_start(max_steps=int(steps.step[-1]) if len(steps) else 1000)
    evaluations: tuple[Evaluation, ...] = parts.get("evaluations", ())
    last_s = max([START_S, *steps.time_s.tolist(), *(each.time_s for each in evaluations)])
    whole: dict[str, Any] = {
        "name": "story",
        "begun_ns": 1_767_225_600_000_000_000,
        "end_s": last_s + 1.0,
        "is_closed": True,
        "ended": "reached 1,000 steps",
        "imported": None,
        "processes": tuple(build_process(rank) for rank in range(2)),
        "starts": ((START_S, started),),
        "finished": TrainingFinished(
            step=int(steps.step[-1]) if len(steps) else 0,
            tokens=int(steps.target_tokens.sum()),
            reason="reached 1,000 steps",
            duration_s=last_s - START_S,
        ),
        "planned": None,
        "devices": (),
        "steps": steps,
        "ranks": build_ranks(steps),
        "redone_steps": 0,
        "redone_s": 0.0,
        "probes": build_probes(),
        "evaluations": evaluations,
        "checkpoints": (),
        "translations": (),
        "examined": (),
        "links": (),
        "samples": {},
        "marks": build_marks(evaluations),
        "card": None,
        "recipe": build_recipe(),
        "damaged": 0,
        "dropped": 0,
    }
    return Series(**{**whole, **parts})
