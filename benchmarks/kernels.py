"""Measures kernels on a GPU one by one: ours beside what PyTorch offers for the same work, and beside a plain copy.

On a CPU it runs too, for trying it out: --device cpu --places 256.
"""

import argparse
import json
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.contest import MOST_DIFFERENCE
from benchmarks.gpu.kernel_parts import PARTS, REHEARSED, Job, measure_part, rehearse_contest
from benchmarks.gpu.stopwatch import first_line
from benchmarks.machine import command_line, describe_machine, machine_slug

_RESULTS = Path(__file__).parent / "results"
_MOST_REHEARSING = 14
_CPU_VOCABULARY = 256

_DEFINITIONS = {
    "us": "median of 20 calls, each between two events in the device's queue, after 256 MiB were written so that "
    "nothing is in the cache; weights and activations are bf16",
    "how": "graph: replays of a recorded CUDA graph, so that the host takes no part; eager: calls as they are, which "
    "could not be recorded",
    "floor_us": "the bytes that must be read and written, each once, at the speed of a copy of 2 GiB on the device",
    "share_of_floor": "floor_us / us",
    "tflops_per_s": "operations of the matrix products over the time of everything",
    "difference": "of results and gradients without dropout from those of judged_by: root mean square over root mean "
    f"square, the worst of them; above {MOST_DIFFERENCE} a side is not timed",
    "prepare_s": "seconds to make a side ready, with compiling where it was not on the disk from a rehearsal",
    "attention": "no dropout but where it is said; cuDNN off; gradients of the others may lie apart. padded sdpa: the "
    "same sentences, sorted by length, in 16 rectangles",
    "residual, dropout, norm": "x + dropout(change), and its layer norm; dropout 0.1",
    "embedding": "rows times sqrt(width) plus sinusoids, dropout 0.1; ours sorts the ids in backward, and adds to a "
    "gradient that is there",
    "projection and loss": "smoothed loss of all places, gradients of states and weight",
    "logits of half": "of half of the places, as ours makes them in pieces",
    "adam": "and a copy of the weights in bf16",
}


def main() -> None:
    """Measure what is asked for, write the result file and print the tables."""
    options = _read_options()
    begun = time.monotonic()
    if options.device == "cpu":
        # The processes inherit it, and Triton must know before kernels are defined.
        os.environ["TRITON_INTERPRET"] = "1"
    machine = describe_machine({})
    jobs = [_job(options, part, options.sizes, until=begun + options.seconds) for part in options.parts]
    rehearsal_s = _rehearse(jobs)
    found: dict[str, dict[str, Any]] = {}
    for job in jobs:
        found[job.part] = _measure(job)
        print(f"{job.part}: {found[job.part].get('error', 'done')}", flush=True)
        # Each time, so that a run that is cut short leaves what it has.
        result = _compose(found, options, machine=machine) | {
            "rehearsal_s": rehearsal_s,
            "all_s": round(time.monotonic() - begun, 1),
        }
        path = _write_result(result, options)
    _print_tables(result)
    print(f"written to {path}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--sizes", nargs="+", help="presets of the model; base and big, or tiny on a CPU")
    parser.add_argument(
        "--parts", nargs="+", choices=tuple(PARTS), default=list(PARTS), help="what to measure"
    )
    parser.add_argument("--places", type=int, default=32_768, help="of a packed row, on each side")
    parser.add_argument("--vocabulary", type=int, help=f"32,000, or {_CPU_VOCABULARY} on a CPU")
    parser.add_argument("--seconds", type=float, default=220.0, help="after which nothing more is begun")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    options.sizes = options.sizes or (["base", "big"] if on_gpu else ["tiny"])
    options.vocabulary = options.vocabulary or (32_000 if on_gpu else _CPU_VOCABULARY)
    return options


def _job(options: argparse.Namespace, part: str, sizes: Sequence[str], *, until: float) -> Job:
    return Job(
        part=part,
        sizes=tuple(sizes),
        places=options.places,
        vocabulary=options.vocabulary,
        device=options.device,
        until=until,
    )


def _rehearse(jobs: Sequence[Job]) -> float:
    """Compile everything side by side, into the caches on the disk; returns the seconds that it took."""
    begun = time.monotonic()
    alone = [
        (replace(job, sizes=(size,)), kernel)
        for job in jobs
        if job.device == "cuda" and job.part in REHEARSED
        for kernel in PARTS[job.part][0]
        for size in job.sizes
    ]
    if alone:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(len(alone), _MOST_REHEARSING), mp_context=context) as pool:
            for waiting in [pool.submit(rehearse_contest, job, kernel) for job, kernel in alone]:
                if (error := waiting.exception()) is not None:
                    print(f"a rehearsal failed: {first_line(error)}", flush=True)
    return round(time.monotonic() - begun, 1)


def _measure(job: Job) -> dict[str, Any]:
    """In a process of its own: a part that breaks the device must not break the others."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(measure_part, job).result()
        except Exception as error:  # noqa: BLE001  (the others are still worth measuring)
            return {"error": f"{type(error).__name__}: {error}"[-3000:]}


def _compose(
    found: Mapping[str, Mapping[str, Any]], options: argparse.Namespace, *, machine: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "benchmark": "kernels",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "command": command_line(),
        "definitions": _DEFINITIONS,
        "places": options.places,
        "vocabulary": options.vocabulary,
        "copy_bytes_per_s": {
            part: each["copy_bytes_per_s"] for part, each in found.items() if "rows" in each
        },
        "seconds": {part: each["seconds"] for part, each in found.items() if "rows" in each},
        "errors": {part: each["error"] for part, each in found.items() if "error" in each},
        "rows": [row for each in found.values() for row in each.get("rows", [])],
    }


def _write_result(result: Mapping[str, Any], options: argparse.Namespace) -> Path:
    gpu = re.sub("[^a-z0-9]+", "-", result["device"].lower())
    name = f"{result['date']}-kernels-{gpu if options.device == 'cuda' else machine_slug()}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / name
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_tables(result: Mapping[str, Any]) -> None:
    console = Console(highlight=False, width=150)
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in result["rows"]:
        groups.setdefault((row["part"], row["size"]), []).append(row)
    for (part, size), rows in groups.items():
        console.print(_table(f"{part}, {size}", rows))
    speeds = ", ".join(f"{part} {each / 1e12:.2f}" for part, each in result["copy_bytes_per_s"].items())
    console.print(
        f"A cell has µs, then the share of the floor or TFLOP/s; * eager. A copy moved, in TB/s: {speeds}."
    )
    for row in result["rows"]:
        if "error" in row:
            where = f"{row['kernel']}, {row['size']}, {row['side']}"
            console.print(f"{where}: {row['error']}", markup=False)
    for part, error in result["errors"].items():
        console.print(f"{part} failed: {error}", markup=False)


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    ways = list(dict.fromkeys(row["way"] for row in rows if "way" in row))
    table = Table("", "", *ways, title=title, title_justify="left")
    sides: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        cells = sides.setdefault((row["kernel"], row["side"]), {})
        cells[row.get("way", ways[0] if ways else "")] = _cell(row)
    for (kernel, side), cells in sides.items():
        table.add_row(kernel, side, *(cells.get(way, "") for way in ways))
    return table


def _cell(row: Mapping[str, Any]) -> str:
    if "error" in row:
        return "failed"
    parts = [f"{row['us']:,.1f}{'*' if row['how'] == 'eager' else ''}"]
    if "share_of_floor" in row:
        parts.append(f"{row['share_of_floor']:.0%}")
    if "tflops_per_s" in row:
        parts.append(f"{row['tflops_per_s']:,.0f} T")
    return ", ".join(parts)


if __name__ == "__main__":
    main()
