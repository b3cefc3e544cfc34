"""Measures how long a report of a long run takes, and how much memory: a day on sixteen ranks, 300,000 steps."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars
from tandem.observe.series.fold import read_series
from tandem.runlog.layout import RunLayout

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.long_log import LongRun, write_long_log
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.measure import all_cores, peak_memory_bytes, time_stages
from benchmarks.program import BENCH

__all__ = ["build_commands", "main", "measure"]

_RESULTS = Path(__file__).parent / "results"
_LIMITS = {"report": {"wall_s": 20.0, "peak_bytes": 10**9}}
_REPEATS = 3

_DEFINITIONS = {
    "log": "simulated: two hosts of eight GPUs, 300,000 steps in a day, some of them twice after two restarts, "
    "an evaluation and a checkpoint every 4,000 steps, each host sampled once a second; in the page cache",
    "read": "a process that folds the log into a series and ends; seconds from its start to its end",
    "report": "`tandem report RUN --html --json`, likewise",
    "wall_s": "median of the repetitions",
    "cpu_s": "processor seconds of all its processes, of the median repetition",
    "peak_bytes": "highest sum of PSS over all its processes, sampled every 20 ms in a repetition that is not timed",
}


def main() -> None:
    """Write the log, measure, write the result file and print the table."""
    options = _read_options()
    if options.read is not None:
        started = time.perf_counter()
        series = read_series(options.read)
        print(f"{len(series.steps)} steps in {time.perf_counter() - started:.2f} s")
        return
    if options.write is not None:
        with Bars() as progress:
            write_long_log(
                options.write, LongRun(steps=options.steps), workers=all_cores(), progress=progress
            )
        return
    machine = describe_machine({})
    run = BENCH / "report-long" / "run"
    shutil.rmtree(run.parent, ignore_errors=True)
    try:
        # In a process of its own, since measuring waits for whatever this one has started.
        write = [sys.executable, __file__, "--write", str(run), "--steps", str(options.steps)]
        subprocess.run(write, check=True)
        result = {
            "benchmark": "report-long",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine,
            "definitions": _DEFINITIONS,
            "steps": options.steps,
            "log_bytes": sum(path.stat().st_size for path in RunLayout(run).log.iterdir()),
            "limits": _LIMITS,
            **{name: measure(command, run.parent) for name, command in build_commands(run).items()},
        }
    finally:
        shutil.rmtree(run.parent, ignore_errors=True)
    path = _write_result(result, options.out)
    _print_table(result)
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=LongRun.steps)
    parser.add_argument(
        "--read", type=Path, metavar="RUN", help="only read this run, and say how long it took"
    )
    parser.add_argument("--write", type=Path, metavar="RUN", help="only write the log of this run")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def build_commands(run: Path) -> Mapping[str, Sequence[str]]:
    """What is measured; the report where this Tandem has one."""
    commands = {"read": [sys.executable, str(Path(__file__).resolve()), "--read", str(run)]}
    report = [sys.executable, "-m", "tandem", "report"]
    if subprocess.run([*report, "--help"], capture_output=True, check=False).returncode == 0:
        commands["report"] = [*report, str(run), "--html", "--json"]
    return commands


def measure(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """Seconds and peak memory of a command and all that it starts."""
    stages = [[command]]
    peak = peak_memory_bytes(stages, cores=all_cores(), folder=folder)
    took = [time_stages(stages, cores=all_cores(), folder=folder) for _ in range(_REPEATS)]
    middle = median(each.wall_s for each in took)
    return {
        "wall_s": round(middle, 3),
        "cpu_s": round(next(each.cpu_s for each in took if each.wall_s == middle), 3),
        "peak_bytes": peak,
        "repetitions_s": [round(each.wall_s, 3) for each in took],
    }


def _write_result(result: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-report-long-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(result: Mapping[str, Any]) -> None:
    table = Table("", "seconds", "processor seconds", "peak MB")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in ("read", "report"):
        if name in result:
            held = result[name]
            table.add_row(
                name, f"{held['wall_s']:.1f}", f"{held['cpu_s']:.1f}", f"{held['peak_bytes'] / 1e6:,.0f}"
            )
    console = Console(highlight=False)
    console.print(table)
    console.print(f"a log of {result['log_bytes'] / 1e9:.2f} GB, {result['steps']:,} steps", soft_wrap=True)


if __name__ == "__main__":
    main()
