"""Two ranks of unequal speed: tokens a second with shares by speed, with equal shares, and of each rank alone."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.program import BENCH
from benchmarks.truth.injectors import Account, stopped
from benchmarks.truth.scene import Scene

from tandem.config import load_recipe
from tandem.data.prepare import prepare
from tandem.runlog.event import SharesChanged, StepFinished
from tandem.runlog.reader import read_records

_RESULTS = Path(__file__).parent / "results"
_HOME = BENCH / "uneven"
_ON_S, _OFF_S = 0.04, 0.02
"""Stopped and going on: a third of a rank's speed."""
_SETTLED = 130
"""The first step that counts."""
_LOOK_S, _PATIENCE_S = 0.05, 900.0
_DEFINITIONS = {
    "tokens_per_s": "target tokens of all ranks without padding by the step times of rank 0, from step "
    f"{_SETTLED} to the last; each rank is pinned to a core of its own and has one thread",
    "slow": f"a rank that is stopped by SIGSTOP for {_ON_S} s and goes on for {_OFF_S} s, again and again",
    "slowed": "shares by speed, where the second rank becomes slow at a third of the steps before the first that "
    "counts, and is as fast as the first until then",
    "part_of_sum": "tokens_per_s divided by the sum of what fast and slow reach alone; the goal of auto is 0.95",
}
_RECIPE = """
name: uneven
data:
  train:
    - builtin: {{pairs: 20000}}
  folder: {folder}
subword: {{vocabulary: 2048, max_pieces: 64}}
batch: {{target_tokens: {tokens}}}
model: {{preset: tiny, width: 128, heads: 4, encoder_layers: 2, decoder_layers: 2, feed_forward: 512}}
train: {{max_steps: {steps}}}
evaluate: {{every_steps: null, every_minutes: null, probe_pairs: 0, sentences: 0}}
checkpoint: {{every_minutes: null, keep_best: 0, keep_last: 1}}
telemetry: {{probe_steps: null, report: false}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One way to train, and the rank that is slow from a step on."""

    name: str
    workers: int
    shares: str = "auto"
    slow_rank: int | None = None
    slow_from: int = 0


_SIDES = (
    _Side(name="fast", workers=1),
    _Side(name="slow", workers=1, slow_rank=0),
    _Side(name="even", workers=2, shares="even", slow_rank=1),
    _Side(name="auto", workers=2, slow_rank=1),
    _Side(name="slowed", workers=2, slow_rank=1, slow_from=_SETTLED // 3),
)


def main() -> None:
    """Train each side in turn, round after round, and write the result file."""
    options = _read_options()
    shutil.rmtree(_HOME, ignore_errors=True)
    _HOME.mkdir(parents=True)
    machine = describe_machine({})
    recipe = _HOME / "recipe.yaml"
    recipe.write_text(_RECIPE.format(folder=_HOME / "data", tokens=options.tokens, steps=options.steps))
    prepare(load_recipe(recipe).recipe, workers=1)
    rounds = [
        {side.name: _measure(side, number) for side in _in_turn(number)} for number in range(options.rounds)
    ]
    speeds = {
        side.name: statistics.median(each[side.name]["tokens_per_s"] for each in rounds) for side in _SIDES
    }
    whole = speeds["fast"] + speeds["slow"]
    result = {
        "benchmark": "uneven",
        "date": datetime.now(UTC).date().isoformat(),
        "command": command_line(),
        "machine": {**machine, "load_after": round(os.getloadavg()[0], 2)},
        "definitions": _DEFINITIONS,
        "steps": options.steps,
        "target_tokens": options.tokens,
        "tokens_per_s": {name: round(speed, 1) for name, speed in speeds.items()},
        "part_of_sum": {name: round(speeds[name] / whole, 3) for name in ("even", "auto", "slowed")},
        "rounds": rounds,
    }
    path = options.out / f"{result['date']}-uneven-{machine_slug()}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    shutil.rmtree(_HOME, ignore_errors=True)
    print(json.dumps({key: result[key] for key in ("tokens_per_s", "part_of_sum")}, indent=1))
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=250, help="of each run")
    parser.add_argument("--tokens", type=int, default=2048, help="target tokens of an update")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _in_turn(number: int) -> Sequence[_Side]:
    """The sides, every other round from the last to the first: a machine that drifts favours none."""
    return _SIDES[::-1] if number % 2 else _SIDES


def _measure(side: _Side, number: int) -> dict[str, Any]:
    name = f"{side.name}-{number}"
    words = ["train", "recipe.yaml", "--run", f"runs/{name}", "--workers", str(side.workers)]
    words += ["--device", "cpu", "--plain", f"batch.shares={side.shares}"]
    with (
        (_HOME / f"{name}.txt").open("w") as output,
        subprocess.Popen(
            [sys.executable, "-m", "tandem", *words],
            cwd=_HOME,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        try:
            _watch(Scene(folder=_HOME, name=name, process=process), side)
        finally:
            process.terminate()
            process.wait()
    return _read(_HOME / "runs" / name)


def _watch(scene: Scene, side: _Side) -> None:
    """Pin the ranks, make one slow when it is time, and wait for the end."""
    end_s = time.monotonic() + _PATIENCE_S
    while scene.steps() < max(1, side.slow_from):
        if scene.process.poll() is not None or time.monotonic() > end_s:
            raise SystemExit((scene.folder / f"{scene.name}.txt").read_text()[-2000:])
        time.sleep(_LOOK_S)
    for rank, pid in scene.workers().items():
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {rank % (os.cpu_count() or 1)})
    is_slow = side.slow_rank is not None
    inject = stopped(side.slow_rank or 0, on_s=_ON_S, off_s=_OFF_S)
    with inject(scene, Account()) if is_slow else nullcontext():
        scene.process.wait(max(1.0, end_s - time.monotonic()))


def _read(run: Path) -> dict[str, Any]:
    """The speed of a run, and its changes of shares."""
    records = [record for record in read_records(run) if record.rank == 0]
    steps = [record.event for record in records if isinstance(record.event, StepFinished)]
    counted = [step for step in steps if step.step >= _SETTLED]
    changes = [record.event for record in records if isinstance(record.event, SharesChanged)]
    return {
        "tokens_per_s": round(
            sum(step.target_tokens for step in counted) / sum(step.duration_s for step in counted), 1
        ),
        "shares": [[change.first_step, *(round(share, 3) for share in change.shares)] for change in changes],
    }


if __name__ == "__main__":
    main()
