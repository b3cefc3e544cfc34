"""Asks what a dashboard costs the run that it follows: one run, with somebody looking and with nobody, in turn."""

import argparse
import json
import os
import shutil
import subprocess
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
from tandem.runlog.layout import RunLayout

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.dashboard_served import Served, serving
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.program import BENCH

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_RESULTS = Path(__file__).parent / "results"
_FIGURES = "losses,bleu,learning_rate,gradient_norm,throughput"
_SETTLE_S = 8.0
_DEFINITIONS = {
    "run": "a recipe, the demo's where none is named, with so many workers, one thread each, without evaluations and "
    "checkpoints",
    "block": "a stretch of the run in which a stream with the five figures of the page's first part is open (on), or "
    f"none is (off), in the order on, off, off, on; its first {_SETTLE_S:.0f} s are left out",
    "ratios": "median step time of an on block over that of the off block beside it, less 1",
    "cost": "mean of the ratios with its 95 % interval (t): measurable where the interval is above 0",
    "server_cores": "processor seconds of the server a second while the stream was open",
}


def main() -> None:
    """Train, look and look away, write the result file and print what it costs."""
    options = _read_options()
    machine = describe_machine({})
    home = BENCH / "dashboard-cost"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        with _training(home / "run", options) as run:
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
    parser.add_argument("--pairs", type=int, default=8, help="pairs of blocks")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a block")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


@contextmanager
def _training(run: Path, options: argparse.Namespace) -> Iterator[Path]:
    """A run that trains inside the block."""
    never = 10**9
    words = [f"train.max_steps={never}", f"evaluate.every_steps={never}", f"checkpoint.every_steps={never}"]
    command = [sys.executable, "-m", "tandem", "train", str(options.recipe), *words, "--run", str(run)]
    with (run.parent / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [*command, "--workers", str(options.workers), "--plain"],
            stdout=output,
            stderr=output,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        _wait_for_steps(run, process)
        yield run
    finally:
        process.terminate()
        process.wait(60)


def _wait_for_steps(run: Path, process: subprocess.Popen[bytes]) -> None:
    log, until = RunLayout(run).rank_log(0), time.monotonic() + 120
    while not log.is_file() or log.read_bytes().count(b'"event":"StepFinished"') < 100:
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"the run does not train: {(run.parent / 'output.txt').read_text()[-1000:]}")
        time.sleep(0.5)


def _take_turns(run: Path, *, pairs: int, seconds: float) -> tuple[list[tuple[bool, float, float]], float]:
    """Blocks with their begin and end on the wall clock, and what the server used of a core while looked at."""
    blocks: list[tuple[bool, float, float]] = []
    used: list[float] = []
    order = [number % 4 in (0, 3) for number in range(2 * pairs)]
    with (
        Bars() as progress,
        serving(run) as server,
        progress.bar("looking and looking away", total=len(order), unit="blocks") as bar,
    ):
        for is_on in order:
            begun, before = time.time(), _processor_s(server)
            _pass(server, seconds=seconds, is_on=is_on)
            blocks.append((is_on, begun + _SETTLE_S, time.time()))
            if is_on:
                used.append((_processor_s(server) - before) / seconds)
            bar.advance(1)
    return blocks, float(np.mean(used))


def _processor_s(server: Served) -> float:
    times = psutil.Process(server.process.pid).cpu_times()
    return float(times.user + times.system)


def _pass(server: Served, *, seconds: float, is_on: bool) -> None:
    over = threading.Event()
    looking = threading.Thread(target=_look, args=(server, over)) if is_on else None
    if looking is not None:
        looking.start()
    time.sleep(seconds)
    over.set()
    if looking is not None:
        looking.join()


def _look(server: Served, over: threading.Event) -> None:
    """Take what a page takes."""
    with httpx.stream(
        "GET", f"{server.address}/api/runs/run/stream?figures={_FIGURES}", timeout=60
    ) as answer:
        for _ in answer.iter_lines():
            if over.is_set():
                return


def _judge(run: Path, blocks: Sequence[tuple[bool, float, float]]) -> dict[str, Any]:
    series = read_series(run)
    at = series.begun_ns / 1e9 + series.steps.time_s
    medians = [
        float(np.median(series.steps.duration_s[(at >= begin) & (at < end)])) for _, begin, end in blocks
    ]
    pairs = list(zip(medians[::2], medians[1::2], strict=True))
    ratios = np.array(
        [
            (first / second if is_on else second / first) - 1
            for (first, second), (is_on, _, _) in zip(pairs, blocks[::2], strict=True)
        ]
    )
    half = t95(len(ratios) - 1) * float(ratios.std(ddof=1)) / np.sqrt(len(ratios))
    mean = float(ratios.mean())
    return {
        "blocks": [
            {"is_on": is_on, "median_step_s": round(each, 6)}
            for (is_on, _, _), each in zip(blocks, medians, strict=True)
        ],
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
