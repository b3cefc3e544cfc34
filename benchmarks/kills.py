"""Kills the workers of one run again and again, and compares what it learnt with a run that was left alone."""

import argparse
import hashlib
import json
import shutil
import sys
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.killing import KINDS, Kill, kill_while_training, train_alone, weights, write_recipe
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.program import BENCH

_RESULTS = Path(__file__).parent / "results"
_STEPS_A_KILL = 60

_DEFINITIONS = {
    "kills": "workers of one run sent SIGKILL, one after the other; each time the run started all workers again",
    "step": "up to 0.6 s after training began or went on, a random rank",
    "save": "rank 0 while a checkpoint is being written: the half-written folder was still there after the kill",
    "start": "up to 5 s after the workers were started, a random rank",
    "is_identical": "whether model.safetensors and optimizer.safetensors of the last step are the same bytes as in "
    "a run that was left alone",
}


def main() -> None:
    options = _read_options()
    folder = BENCH / "kills"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    machine = describe_machine({})
    write_recipe(folder, steps=_STEPS_A_KILL * options.kills)
    how = ["--device", options.device, "--workers", str(options.workers), *options.overrides]
    train_alone(folder, "alone", how)
    begun = time.monotonic()
    kills = kill_while_training(folder, "killed", how, kills=options.kills, seed=options.seed)
    sums = [_sums(folder, run) for run in ("alone", "killed")]
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "definitions": _DEFINITIONS,
        "workers": options.workers,
        "device": options.device,
        "overrides": options.overrides,
        "seed": options.seed,
        "steps": _STEPS_A_KILL * options.kills,
        "wall_s": round(time.monotonic() - begun, 1),
        "kills": [asdict(kill) for kill in kills],
        "sha256": sums[0],
        "is_identical": sums[0] == sums[1],
    }
    path = options.out / f"{result['date']}-kills-{machine_slug(options.device)}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    _show(kills, is_identical=sums[0] == sums[1], path=path)
    if sums[0] != sums[1] or len(kills) < options.kills:
        sys.exit(1)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    parser.add_argument(
        "overrides", nargs="*", help="values of the recipe to change, such as model.preset=base"
    )
    return parser.parse_args()


def _sums(folder: Path, run: str) -> dict[str, str]:
    return {name: hashlib.sha256(held).hexdigest() for name, held in weights(folder, run).items()}


def _show(kills: list[Kill], *, is_identical: bool, path: Path) -> None:
    console = Console(highlight=False)
    counts = Counter(kill.kind for kill in kills)
    parts = ", ".join(f"{counts[kind]} at a {kind}" for kind in KINDS)
    half = sum(kill.left_half_written for kill in kills if kill.kind == "save")
    console.print(f"{len(kills)} kills ({parts}); {half} half-written checkpoints", soft_wrap=True)
    console.print(f"weights and optimiser state identical to a run left alone: {is_identical}")
    console.print(f"wrote {path}", soft_wrap=True)


if __name__ == "__main__":
    main()
