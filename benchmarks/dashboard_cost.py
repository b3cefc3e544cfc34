"""Asks what a dashboard costs the run that it follows: one run, with somebody looking and with nobody, in turn."""

import argparse
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from rich.console import Console

from tandem.cli.bars import Bars
from tandem.observe.series.fold import read_series
from tandem.observe.statistics import t95

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.dashboard_served import Served, serving, training
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.program import BENCH

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_RESULTS = Path(__file__).parent / "results"
_FIGURES = "losses,bleu,learning_rate,gradient_norm,throughput"
_SETTLE_S = 20.0
_EDGE_S = 0.3
_DEFINITIONS = {
    "run": "a recipe, the demo's where none is named, with so many workers, one thread each, without evaluations and "
    "checkpoints",
    "block": "a stretch of the run in which the server of a page with five figures works (on), or "
    "is held (off: SIGSTOP), in pairs of one each in random order; what was written while it was held it reads when it "
    f"goes on, which counts as on. Steps count that begin {_EDGE_S} s after the change or later and end in the block",
    "ratios": "mean step time of the on block of a pair over that of its off block, less 1",
    "cost": "mean of the ratios with its 95 % interval (t): measurable where the interval is above 0",
    "server_cores": "processor seconds of the server a second of the on blocks",
}


def main() -> None:
    """Train, look and look away, write the result file and print what it costs."""
    options = _read_options()
    machine = describe_machine({})
    home = BENCH / "dashboard-cost"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        with training(home / "run", recipe=options.recipe, workers=options.workers) as run:
            blocks, cores = _take_turns(run, pairs=options.pairs, seconds=options.seconds)
        result = {
            "benchmark": "dashboard-cost",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine,
            "definitions": _DEFINITIONS,
            "recipe": options.recipe.name,
            "workers": options.workers,
            "block_s": options.seconds,
            "server_cores": round(cores, 4),
            **_judge(run, blocks),
        }
    finally:
        shutil.rmtree(home, ignore_errors=True)
    path = _write_result(result, options.out)
    cost = result["cost"]
    Console(highlight=False).print(
        f"cost of being looked at: {cost['mean']:+.2%} of a step ({cost['low']:+.2%} to {cost['high']:+.2%}), "
        f"{'measurable' if cost['is_measurable'] else 'not measurable'}; the server took {cores:.1%} of a core"
    )
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--recipe", type=Path, default=_ROOT / "recipes/demo.yaml", help="what the run trains"
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="of the run; with as many as cores none is free"
    )
    parser.add_argument("--pairs", type=int, default=100, help="pairs of blocks")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a block")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _take_turns(run: Path, *, pairs: int, seconds: float) -> tuple[list[tuple[bool, float, float]], float]:
    """Blocks with their begin and end on the wall clock, and what the server used of a core in the on blocks."""
    blocks: list[tuple[bool, float, float]] = []
    draw = np.random.default_rng(1)
    with (
        Bars() as progress,
        serving(run) as server,
        _looking(server),
        progress.bar("looking and looking away", total=2 * pairs, unit="blocks") as bar,
    ):
        time.sleep(_SETTLE_S)
        before = _processor_s(server)
        for _ in range(pairs):
            for is_on in draw.permutation([True, False]).tolist():
                server.process.send_signal(signal.SIGCONT if is_on else signal.SIGSTOP)
                begun = time.time()
                time.sleep(seconds)
                blocks.append((is_on, begun, time.time()))
                bar.advance(1)
        server.process.send_signal(signal.SIGCONT)
        used = _processor_s(server) - before
    return blocks, used / (pairs * seconds)


def _processor_s(server: Served) -> float:
    times = psutil.Process(server.process.pid).cpu_times()
    return float(times.user + times.system)


@contextmanager
def _looking(server: Served) -> Iterator[None]:
    over = threading.Event()
    looking = threading.Thread(target=_look, args=(server, over))
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


def _look(server: Served, over: threading.Event) -> None:
    """Take what a page takes; what a browser makes of it is done elsewhere."""
    with httpx.stream(
        "GET", f"{server.address}/api/runs/run/stream?figures={_FIGURES}", timeout=60
    ) as answer:
        for _ in answer.iter_raw():
            if over.is_set():
                return


def _judge(run: Path, blocks: Sequence[tuple[bool, float, float]]) -> dict[str, Any]:
    series = read_series(run)
    ends = series.begun_ns / 1e9 + series.steps.time_s
    starts = ends - series.steps.duration_s
    means = [
        float(np.mean(series.steps.duration_s[(starts >= begin + _EDGE_S) & (ends < end)]))
        for _, begin, end in blocks
    ]
    pairs = list(zip(means[::2], means[1::2], strict=True))
    ratios = np.array(
        [
            (first / second if is_on else second / first) - 1
            for (first, second), (is_on, _, _) in zip(pairs, blocks[::2], strict=True)
        ]
    )
    half = t95(len(ratios) - 1) * float(ratios.std(ddof=1)) / np.sqrt(len(ratios))
    mean = float(ratios.mean())
    return {
        "mean_step_s": {
            word: round(
                float(np.mean([each for each, (on, _, _) in zip(means, blocks, strict=True) if on is is_on])),
                6,
            )
            for word, is_on in (("on", True), ("off", False))
        },
        "ratios": [round(each, 5) for each in ratios.tolist()],
        "cost": {
            "mean": round(mean, 5),
            "low": round(mean - half, 5),
            "high": round(mean + half, 5),
            "is_measurable": bool(mean - half > 0),
        },
    }


def _write_result(result: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-dashboard-cost-{result['workers']}-workers-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


if __name__ == "__main__":
    main()
