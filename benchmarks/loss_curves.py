"""Trains one recipe in several precisions from one seed, and says how far their loss curves lie apart.

Everything goes through `tandem train`, each run with a folder of its own. The first precision is the one that others
are held against; it is trained once more from another seed, since two runs of one kind differ too.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tandem.config import load_recipe
from tandem.runlog.event import StepFinished, TrainingStarted
from tandem.runlog.reader import read_records

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.corpus import TANDEM
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.program import BENCH

_RESULTS = Path(__file__).parent / "results"
_OTHER_SEED = "another seed"

_DEFINITIONS = {
    "losses": "what was minimised in each step, per target token, smoothing and dropout included",
    "smoothed": "mean over so many steps as `window` says, ending with each step; the first ones are left out",
    "largest_difference": "the largest distance of two smoothed curves at one step, in nats a target token",
    "last_difference": "the other curve less the first one at the last step, smoothed",
    _OTHER_SEED: "the first precision from another seed: other first weights, order and dropout",
}


def main() -> None:
    """Train all kinds, write the result file, print the table."""
    options = _read_options()
    first = options.precisions[0]
    seed = load_recipe(options.recipe, options.overrides).recipe.seed
    kinds = {name: [f"train.precision={name}"] for name in options.precisions}
    kinds[_OTHER_SEED] = [f"train.precision={first}", f"seed={seed + 1}"]
    runs: dict[str, Path] = {}
    for name, values in kinds.items():
        runs[name] = _train(name, values, options)
        # Each time, so that a script that is cut short leaves what it has.
        result = _describe(runs, options)
        path = _write(result, options)
    _print(result)
    print(f"written to {path}")


def smoothed(losses: Sequence[float], *, window: int) -> list[float]:
    """Return means of so many losses in a row."""
    sums = [0.0]
    for loss in losses:
        sums.append(sums[-1] + loss)
    return [(end - begin) / window for begin, end in zip(sums, sums[window:], strict=False)]


def apart(losses: Sequence[float], others: Sequence[float], *, window: int) -> dict[str, float]:
    """Return how far two curves of one length lie apart, smoothed."""
    pairs = zip(smoothed(losses, window=window), smoothed(others, window=window), strict=True)
    differences = [other - own for own, other in pairs]
    largest = max(range(len(differences)), key=lambda place: abs(differences[place]))
    return {
        "largest_difference": round(abs(differences[largest]), 5),
        "at_step": largest + window,
        "last_difference": round(differences[-1], 5),
    }


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument(
        "--precisions", nargs="+", default=["fp32", "bf16"], help="the first is compared with"
    )
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--window", type=int, default=25, help="steps that are smoothed over")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--home", type=Path, default=BENCH / "loss_curves", help="folder of the runs")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    parser.add_argument(
        "--set", nargs="+", default=[], dest="overrides", help="values of the recipe to change"
    )
    options = parser.parse_args()
    if options.window > options.steps:
        parser.error(f"--window {options.window} is more than --steps {options.steps}")
    return options


def _train(name: str, values: Sequence[str], options: argparse.Namespace) -> Path:
    run: Path = options.home / re.sub("[^a-z0-9]+", "-", name)
    shutil.rmtree(run, ignore_errors=True)
    quiet = ["evaluate.every_steps=null", "evaluate.sentences=0", "evaluate.probe_pairs=0"]
    limit = [
        f"train.max_steps={options.steps}",
        "checkpoint.every_steps=null",
        "checkpoint.every_minutes=null",
    ]
    where = ["--run", str(run), "--workers", "1", "--device", options.device, "--plain"]
    overrides = [*options.overrides, *quiet, *limit, *values]
    subprocess.run([*TANDEM, "train", str(options.recipe), *overrides, *where], check=True)
    return run


def _describe(runs: Mapping[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    held = {name: _read(run) for name, run in runs.items()}
    losses = {name: curve["losses"] for name, curve in held.items()}
    first, *others = losses
    recipe = load_recipe(options.recipe, options.overrides).recipe
    return {
        "benchmark": "loss_curves",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine({}),
        "device": next(iter(held.values()))["device"],
        "definitions": _DEFINITIONS,
        "recipe": recipe.model_dump(mode="json", exclude={"data"}),
        "steps": options.steps,
        "window": options.window,
        "compared_with": first,
        "apart": {name: apart(losses[first], losses[name], window=options.window) for name in others},
        "curves": held,
    }


def _read(run: Path) -> dict[str, Any]:
    events = [record.event for record in read_records(run) if record.rank == 0]
    started = next(event for event in events if isinstance(event, TrainingStarted))
    steps = [event for event in events if isinstance(event, StepFinished)]
    assert all(later.step == step.step + 1 for step, later in pairwise(steps))
    return {
        "device": started.device,
        "precision": started.precision,
        "layout": started.layout,
        "way": started.way,
        "step_ms": round(1e3 * statistics.median(step.duration_s for step in steps), 3),
        "skipped": sum(step.skipped for step in steps),
        "losses": [round(step.loss, 5) for step in steps],
    }


def _write(result: Mapping[str, Any], options: argparse.Namespace) -> Path:
    name = f"{result['date']}-loss-curves-{machine_slug(options.device)}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / name
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print(result: Mapping[str, Any]) -> None:
    table = Table("run", "way", "ms a step", "last loss, smoothed", "largest difference", "last difference")
    window = result["window"]
    for name, curve in result["curves"].items():
        distance = result["apart"].get(name)
        cells = ["", ""]
        if distance is not None:
            largest = f"{distance['largest_difference']:.4f} at step {distance['at_step']}"
            cells = [largest, f"{distance['last_difference']:+.4f}"]
        last = smoothed(curve["losses"], window=window)[-1]
        table.add_row(name, curve["way"], f"{curve['step_ms']:.1f}", f"{last:.4f}", *cells)
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
