"""Trains on Europarl for so many seconds' worth of steps on one GPU, in many ways that each differ in one thing.

A step is timed alone, for each kind that takes another time; then runs go side by side, which changes nothing in what
they learn. Every run is judged on the valid text, as benchmarks/time_to_quality.py judges one.
"""

import argparse
import json
import lzma
import math
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tandem.checkpoint.listing import list_checkpoints
from tandem.config import load_recipe
from tandem.data.prepared import open_prepared
from tandem.runlog.event import StepFinished
from tandem.runlog.reader import read_records
from tandem.translate.score import score

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.corpus import TANDEM
from benchmarks.gpu.curve import read_curve
from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.program import BENCH
from benchmarks.time_to_quality import RECIPE

_RESULTS = Path(__file__).parent / "results"
_DATA = Path("../shared/data/europarl")
_SPARE = 0.01
_TRIAL_STEPS, _TRIAL_WARMUP = {"cuda": 160, "cpu": 12}, {"cuda": 60, "cpu": 4}
_TEST = "newstest2013"

COMMON: dict[str, str] = {
    "optim.algorithm": "muon",
    "optim.learning_rate": "8e-3",
    "optim.schedule": "cosine",
    "optim.warmup_steps": "300",
    "optim.ema_decay": "0.99",
    "optim.weight_decay": "0",
    "batch.target_tokens": "16000",
    "model.dropout": "0",
    "train.label_smoothing": "0",
    "checkpoint.keep_last": "1",
}
"""What all runs have but for their one change."""

VARIANTS: dict[str, dict[str, str]] = {
    "as it is": {},
    "AdamW": {"optim.algorithm": "adamw", "optim.learning_rate": "3e-3"},
    "straight decay": {"optim.schedule": "linear"},
    "learning rate 6e-3": {"optim.learning_rate": "6e-3"},
    "learning rate 1.1e-2": {"optim.learning_rate": "1.1e-2"},
    "warm-up 100": {"optim.warmup_steps": "100"},
    "weight decay 0.1": {"optim.weight_decay": "0.1"},
    "no average": {"optim.ema_decay": "0"},
    "dropout 0.05": {"model.dropout": "0.05"},
    "smoothing 0.05": {"train.label_smoothing": "0.05"},
    "smoothing 0.1": {"train.label_smoothing": "0.1"},
    "12,000 tokens": {"batch.target_tokens": "12000"},
    "25,000 tokens": {"batch.target_tokens": "25000"},
}
_TIMED = ("optim.algorithm", "batch.target_tokens", "model.dropout")
"""What changes how long a step takes."""

_DEFINITIONS = {
    "step_ms": "mean over the steps of a run with nothing beside it, the first ones left out",
    "steps": "as many as fit into the seconds, less one per cent, at that time",
    "nats_per_character": "as benchmarks/time_to_quality.py defines it, after the last step",
    "bleu": "sacreBLEU's, 13a, cased, of translations by `tandem translate`; only where --bleu was asked for",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One run."""

    variant: str
    seed: int
    step_ms: float
    steps: int
    curve: Sequence[tuple[int, float]]
    """Steps and nats a character."""
    bleu: Mapping[str, float]
    signature: str


def main() -> None:
    """Prepare the text, time the steps, train, print the table and write the result file."""
    options = _read_options()
    options.home.mkdir(parents=True, exist_ok=True)
    recipe = options.home / "recipe.yaml"
    recipe.write_text(json.dumps(RECIPE | {"data": _data(options)}, indent=1))
    _call("data", "prepare", recipe, *options.overrides)
    chosen = {name: VARIANTS[name] for name in options.variants}
    times = {}
    for key in dict.fromkeys(_timing(COMMON | change) for change in chosen.values()):
        times[key] = step_ms = _time(recipe, dict(key), options)
        print(f"{step_ms:.2f} ms a step: {dict(key)}", flush=True)
    jobs = [(name, change, seed) for seed in options.seeds for name, change in chosen.items()]
    begun = time.monotonic()
    with ThreadPoolExecutor(options.at_once) as pool:
        found = list(pool.map(lambda job: _maybe_train(job, recipe, times, options, begun=begun), jobs))
    trained = [each for each in found if each is not None]
    _print(trained)
    print(f"written to {_write(trained, options)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=_DATA, help="folder of {train,valid}.{en,de}.xz")
    parser.add_argument("--test", type=Path, help=f"folder of {_TEST}.{{en,de}}.xz; beside --data by default")
    parser.add_argument("--seconds", type=float, default=30.0, help="of training that the steps are worth")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--at-once", type=int, default=3, help="runs side by side")
    parser.add_argument("--limit-s", type=float, default=math.inf, help="begin no run after so many seconds")
    parser.add_argument("--evaluations", type=int, default=3)
    parser.add_argument("--bleu", action="store_true", help="translate and score, too")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--home", type=Path, default=BENCH / "ablation", help="folder of data and runs")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    parser.add_argument("overrides", nargs="*", help="values of the recipe to change in all runs")
    options = parser.parse_args()
    options.test = options.test or options.data.parent / _TEST
    return options


def _data(options: argparse.Namespace) -> dict[str, Any]:
    def files(name: str) -> dict[str, str]:
        ends = {"source": "en", "target": "de"}
        return {side: str((options.data / f"{name}.{end}.xz").resolve()) for side, end in ends.items()}

    folder = str((options.home / "prepared").resolve())
    return {"train": [files("train")], "valid": files("valid"), "folder": folder}


def _call(*words: object) -> None:
    command = [*TANDEM, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words} failed: {done.stdout[-1000:]}")


def _timing(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, values[name]) for name in _TIMED)


def _time(recipe: Path, change: dict[str, str], options: argparse.Namespace) -> float:
    run, device = options.home / "trial", options.device
    values = {
        "train.max_steps": str(_TRIAL_STEPS[device]),
        "optim.warmup_steps": "2",
        "evaluate.every_steps": "null",
    }
    _train(recipe, run, COMMON | change | values, options)
    events = [record.event for record in read_records(run) if record.rank == 0]
    counted = [
        event.duration_s
        for event in events
        if isinstance(event, StepFinished) and event.step > _TRIAL_WARMUP[device]
    ]
    return 1e3 * statistics.mean(counted)


def _maybe_train(
    job: tuple[str, dict[str, str], int],
    recipe: Path,
    times: Mapping[tuple[tuple[str, str], ...], float],
    options: argparse.Namespace,
    *,
    begun: float,
) -> Trained | None:
    name, change, seed = job
    if time.monotonic() - begun > options.limit_s:
        print(f"no time left for {name}, seed {seed}", flush=True)
        return None
    values = COMMON | change
    step_ms = times[_timing(values)]
    steps = math.floor(options.seconds * (1 - _SPARE) * 1e3 / step_ms)
    every = math.ceil(steps / options.evaluations)
    run = options.home / f"{seed}-{list(VARIANTS).index(name)}"
    planned = {"seed": str(seed), "train.max_steps": str(steps), "evaluate.every_steps": str(every)}
    _train(recipe, run, {**values, **planned}, options)
    characters = _count_characters(run)
    curve = [(point.step, round(point.nll / characters, 5)) for point in read_curve(run).points]
    scores = {each: _score(run, each, options) for each in ("valid", _TEST)} if options.bleu else {}
    trained = Trained(
        variant=name,
        seed=seed,
        step_ms=round(step_ms, 3),
        steps=steps,
        curve=curve,
        bleu={each: held[0] for each, held in scores.items()},
        signature=next((held[1] for held in scores.values()), ""),
    )
    print(f"{name}, seed {seed}: {steps} steps, {curve[-1][1]}, {trained.bleu}", flush=True)
    shutil.rmtree(run)
    return trained


def _train(recipe: Path, run: Path, values: Mapping[str, str], options: argparse.Namespace) -> None:
    shutil.rmtree(run, ignore_errors=True)
    overrides = [f"{name}={value}" for name, value in values.items()]
    where = ["--workers", "1", "--device", options.device, "--plain"]
    _call("train", recipe, *overrides, *options.overrides, "--run", run, *where)


def _count_characters(run: Path) -> int:
    prepared = open_prepared(load_recipe(run / "recipe.yaml").recipe.prepared_folder)
    return sum(map(len, prepared.held_out_text("valid").target))


def _score(run: Path, name: str, options: argparse.Namespace) -> tuple[float, str]:
    folder = options.test if name == _TEST else options.data
    source, target = (
        lzma.decompress((folder / f"{name}.{end}.xz").read_bytes()).decode() for end in ("en", "de")
    )
    model = next(info for info in list_checkpoints(run / "checkpoints") if info.is_newest).folder
    command = [*TANDEM, "translate", str(model), "--device", options.device]
    done = subprocess.run(command, input=source, stdout=subprocess.PIPE, text=True, check=True)
    scores = score(done.stdout.split("\n")[:-1], target.split("\n")[:-1])
    return round(scores.bleu, 2), scores.bleu_signature


def _print(trained: Sequence[Trained]) -> None:
    table = Table("what is changed", "ms a step", "steps", "nats a character", "BLEU")
    for name in dict.fromkeys(each.variant for each in trained):
        held = [each for each in trained if each.variant == name]
        ends = ", ".join(f"{each.curve[-1][1]:.4f}" for each in held)
        bleu = ", ".join(f"{each.bleu['valid']:.2f} / {each.bleu[_TEST]:.2f}" for each in held if each.bleu)
        table.add_row(name, f"{held[0].step_ms:.2f}", f"{held[0].steps:,}", ends, bleu)
    Console(highlight=False).print(table)


def _write(trained: Sequence[Trained], options: argparse.Namespace) -> Path:
    result = {
        "benchmark": "ablation",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine({}),
        "command": command_line(),
        "definitions": _DEFINITIONS,
        "seconds": options.seconds,
        "common": COMMON,
        "variants": VARIANTS,
        "runs": [asdict(each) for each in trained],
    }
    path: Path = options.out / f"{result['date']}-ablation-{machine_slug(options.device)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


if __name__ == "__main__":
    main()
