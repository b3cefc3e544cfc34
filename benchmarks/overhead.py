"""Measures what log, phase clock, checkpoints, samples and probes cost a training step: on against off."""

import argparse
import json
import math
import os
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars
from tandem.config import EvaluateSection, Recipe, TelemetrySection, load_recipe
from tandem.data.prepare import prepare
from tandem.data.workers import cores
from tandem.progress import Progress
from tandem.runlog.event import CheckpointWritten, StepFinished
from tandem.runlog.reader import read_records

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe_machine, machine_slug
from benchmarks.program import BENCH
from benchmarks.switched import Side, SwitchedTrainer

_HOME = BENCH / "overhead"
_RESULTS = Path(__file__).parent / "results"
_BUSY = 0.5
_LIMIT, _TELEMETRY_LIMIT = 0.02, 0.01
_WARM_STEPS = 20
_BLOCK_S = 2.0
_WRITES_A_BLOCK = 2.0
"""How much longer a block is than a checkpoint's write by itself; beside training the write takes longer."""
_FEWEST_ROUNDS = 5
_RESAMPLES = 10_000
_DRAWS = 200_000
_USUAL_STEPS = EvaluateSection().every_steps or 1000
"""From one checkpoint to the next, where a recipe says nothing."""
_INTERVALS_STEPS = (100, _USUAL_STEPS, 10_000)
_PROBE_STEPS = TelemetrySection().probe_steps or 500
"""From one probe to the next, where a recipe says nothing."""

# Log and clock cost a step the same whatever the model, so the shortest steps show the largest share.
_DEFAULTS = {
    "cpu": {"preset": "tiny", "tokens": 2048, "pairs": 20_000, "minutes": 4.5},
    "cuda": {"preset": "base", "tokens": 25_000, "pairs": 100_000, "minutes": 1.0},
}

OFF, ON = Side(name="off"), Side(name="on", log=True, clock=True, checkpoint=True)
PARTS = (Side(name="log", log=True), Side(name="clock", clock=True), Side(name="checkpoint", checkpoint=True))
PLACEBO = Side(name="off again")
PROBE = Side(name="probe", probe=True)
TELEMETRY = Side(name="telemetry", log=True, clock=True, samples=True, probe=True)
SIDES = (OFF, PLACEBO, *PARTS, ON, Side(name="samples", samples=True), PROBE, TELEMETRY)

_DEFINITIONS = {
    "block": "the same updates each time, through the trainer's own loop; seconds from before the first step until the "
    "last one is done, all events of the block are flushed to the disk, and its checkpoint is whole there",
    "round": "one block of each side, in random order; rounds that count come after one that does not",
    "off": "a run log that ignores events, a clock that does nothing, no checkpoint; each step's numbers are still "
    "read, for the loop needs them, and put into an event that nobody takes",
    "off again": "the same as off: what it seems to cost is error, and shows what this measurement can tell apart",
    "log": "off, but with the run log's file and thread, opened and closed inside the block",
    "clock": "off, but with the phase clock",
    "checkpoint": "off, but with a checkpoint at the block's first step: copied then, written in the background with "
    "checksums, old ones removed",
    "on": "log, clock and checkpoint; displays and TensorBoard are other processes, and not counted",
    "samples": "off, but with a sampler beside it once a second, which was started before the block",
    "probe": "off, but the block's first step is also done without exchange, as a run on several ranks does now and "
    "then; what waiting for other ranks costs then is not in it",
    "telemetry": "log, clock, samples and probe together",
    "shares": "of step time. mean: sum over rounds of (side - off) / sum of off; median: over rounds, of side / off, "
    "less 1; low, high: 95 % interval of the mean, from rounds drawn anew with replacement, widened for few rounds",
    "checkpoint_s": "seconds of training that a checkpoint costs, those that it blocks and those that steps are slower "
    "while it is written: checkpoint - off",
    "at_interval": "share of step time with a checkpoint every so many steps. Log and clock cost each step; a "
    "checkpoint costs the same however rare: ((on - checkpoint) + (checkpoint - off) * steps_a_block / interval) / off",
    "telemetry_at_interval": "share of step time with a probe every so many steps: "
    "((telemetry - probe) + (probe - off) * steps_a_block / interval) / off",
    "is_telemetry_under_limit": "whether the whole interval of that lies under 1 % at the usual interval",
    "is_under_limit": "whether the whole interval at usual_interval lies under 2 %; nothing is said where the interval "
    "of `off again` is not within 2 % of zero",
    "written": "blocked_s and write_s as the run log tells them, mean over the blocks of `on`; log_close_s: mean "
    "seconds of flushing and closing the log, which each block counts though a run does it once",
}

Blocks = Mapping[str, NDArray[np.float64]]
"""Seconds of each block by side; one number a round."""


def main() -> None:
    """Prepare, measure, write the result file and print the table."""
    options = _read_options()
    if (load := os.getloadavg()[0]) > _BUSY:
        print(f"this machine is busy (load {load:.1f}): figures will be blurred", flush=True)
    machine = describe_machine({})
    shutil.rmtree(_HOME, ignore_errors=True)
    _HOME.mkdir(parents=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, _HOME, ignore_errors=True)
        progress = stack.enter_context(Bars())
        recipe = _write_recipe(options)
        prepare(recipe, workers=cores(), progress=progress)
        trainer = SwitchedTrainer.build(_HOME / "run", recipe, options.device)
        stack.callback(trainer.store.close)
        steps = _choose_steps(trainer, options.steps)
        blocks, logged = _measure(trainer, steps=steps, minutes=options.minutes, progress=progress)
        result = {
            "benchmark": "overhead",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine,
            "definitions": _DEFINITIONS,
            "setting": _describe(trainer, recipe),
            **_figures(blocks, steps=steps),
            "written": _read_written(trainer, logged, steps=steps),
            "block_s": {side: [round(each, 4) for each in held] for side, held in blocks.items()},
        }
    path = _write_result(result, options)
    _print_table(result)
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=tuple(_DEFAULTS), default="cpu")
    parser.add_argument("--preset", help="size of the model; tiny on a CPU, base on a GPU")
    parser.add_argument("--tokens", type=int, help="target tokens of an update; 2,048 or 25,000")
    parser.add_argument("--pairs", type=int, help="of built-in text; 20,000 or 100,000")
    parser.add_argument("--minutes", type=float, help="how long to measure; 4.5 or 1")
    parser.add_argument("--steps", type=int, help="of a block; from the time of a step and of a checkpoint")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    parser.set_defaults(**_DEFAULTS[parser.parse_args().device])
    options = parser.parse_args()
    if options.steps is not None and options.steps < 2:
        parser.error("--steps must be at least 2")
    return options


def _write_recipe(options: argparse.Namespace) -> Recipe:
    held = {
        "name": "overhead",
        "data": {"train": [{"builtin": {"pairs": options.pairs}}], "folder": "prepared"},
        "subword": {"vocabulary": 2048, "max_pieces": 64},
        "batch": {"target_tokens": options.tokens},
        "model": {"preset": options.preset},
    }
    path = _HOME / "recipe.yaml"
    path.write_text(json.dumps(held))
    return load_recipe(path).recipe


def _choose_steps(trainer: SwitchedTrainer, wanted: int | None) -> int:
    """Blocks long enough for a checkpoint to be written, and short enough for many rounds."""
    trainer.train(ON, _WARM_STEPS)
    step_s = trainer.train(OFF, _WARM_STEPS) / _WARM_STEPS
    write_s = trainer.time_write()
    # Past the steps of the warm-up, whose checkpoints may still be there.
    trainer.blocks = _WARM_STEPS
    return wanted or max(2, math.ceil(max(_BLOCK_S, _WRITES_A_BLOCK * write_s) / step_s))


def _measure(
    trainer: SwitchedTrainer, *, steps: int, minutes: float, progress: Progress
) -> tuple[Blocks, list[int]]:
    """Rounds until the time is over; returns seconds, and which blocks had everything on."""
    for side in SIDES:
        trainer.train(side, steps)
    held: dict[str, list[float]] = {side.name: [] for side in SIDES}
    logged: list[int] = []
    dice = random.Random(1)  # noqa: S311  (nothing secret is drawn)
    end_s = time.monotonic() + 60 * minutes
    with progress.bar("measuring", unit="rounds") as bar:
        while len(held[OFF.name]) < _FEWEST_ROUNDS or time.monotonic() < end_s:
            for side in dice.sample(SIDES, len(SIDES)):
                held[side.name].append(trainer.train(side, steps))
                if side is ON:
                    logged.append(trainer.blocks)
            bar.advance(1)
    return {name: np.array(each) for name, each in held.items()}, logged


def _figures(blocks: Blocks, *, steps: int) -> dict[str, object]:
    off, on, checkpoint = (blocks[name] for name in ("off", "on", "checkpoint"))
    shares = {side.name: _share(blocks[side.name] - off, off) for side in SIDES[1:]}
    for name, share in shares.items():
        share["median"] = round(float(np.median(blocks[name] / off) - 1), 5)
    at = {each: _share(on - checkpoint + (checkpoint - off) * steps / each, off) for each in _INTERVALS_STEPS}
    watched, probe = blocks[TELEMETRY.name], blocks[PROBE.name]
    telemetry = {
        each: _share(watched - probe + (probe - off) * steps / each, off) for each in (100, _PROBE_STEPS)
    }
    return {
        "rounds": len(off),
        "steps_a_block": steps,
        "step_s": round(float(off.mean()) / steps, 6),
        "shares": shares,
        "checkpoint_s": _share(checkpoint - off, np.ones_like(off)),
        "at_interval": at,
        "usual_interval": _USUAL_STEPS,
        "is_under_limit": _judge(at[_USUAL_STEPS], placebo=shares[PLACEBO.name]),
        "telemetry_at_interval": telemetry,
        "usual_probe_interval": _PROBE_STEPS,
        "is_telemetry_under_limit": _judge(
            telemetry[_PROBE_STEPS], placebo=shares[PLACEBO.name], limit=_TELEMETRY_LIMIT
        ),
    }


def _share(extra: NDArray[np.float64], of: NDArray[np.float64]) -> dict[str, float]:
    """The mean and its interval; the blocks of a round stay together, so that drift cancels."""
    drawn = np.random.default_rng(1).integers(len(of), size=(_RESAMPLES, len(of)))
    mean = extra.sum() / of.sum()
    low, high = np.percentile(extra[drawn].sum(axis=1) / of[drawn].sum(axis=1), (2.5, 97.5))
    wider = _widening(len(of))
    found = {"mean": mean, "low": mean - wider * (mean - low), "high": mean + wider * (high - mean)}
    return {name: round(float(each), 5) for name, each in found.items()}


def _widening(rounds: int) -> float:
    """What rounds drawn anew miss: they vary less than new ones would, and a few tell little of how much they vary."""
    student = np.quantile(np.random.default_rng(1).standard_t(rounds - 1, _DRAWS), 0.975)
    return float(student / NormalDist().inv_cdf(0.975) * math.sqrt(rounds / (rounds - 1)))


def _judge(share: Mapping[str, float], *, placebo: Mapping[str, float], limit: float = _LIMIT) -> str:
    is_sharp = placebo["low"] > -limit and placebo["high"] < limit
    if is_sharp and share["high"] < limit:
        return "yes"
    if is_sharp and share["low"] > limit:
        return "no"
    return "cannot tell: measure longer, with nothing else on the machine"


def _read_written(trainer: SwitchedTrainer, logged: Sequence[int], *, steps: int) -> dict[str, float]:
    """What the log says of checkpoints, and a check that all was on where it should have been."""
    written: list[CheckpointWritten] = []
    for block in logged:
        events = [record.event for record in read_records(trainer.log_folder(block))]
        timed = [event for event in events if isinstance(event, StepFinished) and event.phases]
        saved = [event for event in events if isinstance(event, CheckpointWritten)]
        if (len(timed), len(saved)) != (steps, 1):
            raise SystemExit(f"a block of {steps} steps logged {len(timed)} and {len(saved)} checkpoints")
        written += saved
    return {
        "bytes": written[-1].bytes,
        "blocked_s": round(float(np.mean([event.blocked_s for event in written])), 4),
        "write_s": round(float(np.mean([event.write_s for event in written])), 4),
        "log_close_s": round(float(np.mean(trainer.log_close_s)), 4),
    }


def _describe(trainer: SwitchedTrainer, recipe: Recipe) -> dict[str, object]:
    device = trainer.place.world.device
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "preset": recipe.model.preset,
        "parameters": sum(each.numel() for each in trainer.learner.model.parameters()),
        "vocabulary": trainer.data.subword.vocabulary,
        "target_tokens_an_update": recipe.batch.target_tokens,
        "layout": trainer.shape.layout,
    }


def _write_result(result: Mapping[str, Any], options: argparse.Namespace) -> Path:
    name = f"{result['date']}-overhead-{machine_slug(options.device)}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / name
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(result: Mapping[str, Any]) -> None:
    table = Table("what is on", "share of step time", "95 % interval", "median")
    for column in table.columns[1:]:
        column.justify = "right"
    block, shares, written = result["steps_a_block"], result["shares"], result["written"]
    for name, share in shares.items():
        is_rare = name in {"checkpoint", "on", "probe", "telemetry"}
        every = f", every {block} steps" if is_rare else ""
        table.add_row(f"{name}{every}", *_percent(share), f"{share['median']:.2%}")
    for each, share in result["at_interval"].items():
        table.add_row(f"on, every {each} steps *", *_percent(share), "")
    for each, share in result["telemetry_at_interval"].items():
        table.add_row(f"telemetry, a probe every {each} steps *", *_percent(share), "")
    console = Console(highlight=False)
    console.print(table)
    setting, cost = result["setting"], _milliseconds(result["checkpoint_s"])
    size_mb, took = written["bytes"] / 1e6, _milliseconds(written)
    where = f"{setting['preset']} on {setting['device']}"
    watching = f"telemetry under {_TELEMETRY_LIMIT:.0%} with a probe every {_PROBE_STEPS} steps"
    lines = [
        "every: steps from one checkpoint or probe to the next; * derived from the rows above",
        f"{where}, {result['rounds']} rounds: {1e3 * result['step_s']:.1f} ms a step",
        f"a checkpoint of {size_mb:,.0f} MB costs {cost['mean']} ms of training ({cost['low']} to {cost['high']})",
        f"it blocks for {took['blocked_s']} ms, and is written in {took['write_s']} ms",
        f"under {_LIMIT:.0%} with a checkpoint every {_USUAL_STEPS} steps: {result['is_under_limit']}",
        f"{watching}: {result['is_telemetry_under_limit']}",
    ]
    for line in lines:
        console.print(line, soft_wrap=True)


def _milliseconds(seconds: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{1e3 * each:.1f}" for name, each in seconds.items()}


def _percent(share: Mapping[str, float]) -> tuple[str, str]:
    return f"{share['mean']:.2%}", f"{share['low']:.2%} to {share['high']:.2%}"


if __name__ == "__main__":
    main()
