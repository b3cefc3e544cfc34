"""Asks what fits: the largest micro-batch by `tandem estimate`, beside what --fit finds with as much memory.

Needs a GPU; smaller ones are imitated by a limit on what the process may take.
"""

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from tandem.config import load_recipe
from tandem.data.batches.shape import BatchShape
from tandem.data.prepared import open_prepared
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError
from tandem.estimate.memory import CONTEXT_BYTES, MOST_TOKENS, RankMemory
from tandem.parallel.world import open_world
from tandem.telemetry.clock import PhaseClock
from tandem.train.fit import find_capacity, fits
from tandem.train.learner import Learner
from tandem.train.way import Way, choose_way
from tandem.train.worst import build_worst

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.corpus import Synthetic, prepare_corpus
from benchmarks.machine import command_line, describe_machine
from benchmarks.program import BENCH

_RESULTS = Path(__file__).parent / "results"
_GIGABYTES = (16, 24, 40, 80)
_PAIRS = 50_000
"""Enough for the text to have every piece of the vocabulary."""
_TOKENS = 32_000
_TIMEOUT_S = 60.0

_DEFINITIONS = {
    "gpu_bytes": "of the imitated GPU; PyTorch may take that less what the driver takes, the last one is the whole GPU",
    "estimated_tokens": "a side of a micro-batch, by tandem estimate, with its reserve",
    "found_tokens": "a side, by the search of --fit, less the tenth that it keeps in reserve",
    "estimate_fits": "whether a batch of estimated_tokens, full of the longest sentences, went through",
    "counted_bytes": "state and pass of found_tokens, by tandem estimate, without a reserve",
    "peak_bytes": "the same by torch.cuda.max_memory_allocated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One model, and the GPUs that are imitated for it."""

    recipe: Path
    gpu_bytes: Sequence[int]


def main() -> None:
    """Make the text, search with every size and limit, write the result file and print the table."""
    options = _read_options()
    if not torch.cuda.is_available():
        raise SystemExit("fits.py asks how much a GPU's memory holds, but there is no GPU here.")
    begun = time.monotonic()
    text = Synthetic(pairs=_PAIRS)
    recipes = prepare_corpus(text, options.home, presets=options.presets, target_tokens=_TOKENS)
    device = torch.cuda.get_device_name()
    sizes = choose_limits(torch.cuda.get_device_properties(0).total_memory)
    cases = [
        {"size": recipe.stem, **case}
        for recipe in recipes
        for case in _measure(Job(recipe=recipe, gpu_bytes=sizes))
    ]
    result = {
        "benchmark": "fits",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine({}),
        "device": device,
        "command": command_line(),
        "definitions": _DEFINITIONS,
        "all_s": round(time.monotonic() - begun, 1),
        "cases": cases,
    }
    path = _write_result(result, options.out)
    Console(highlight=False, width=120).print(build_table(cases))
    print(f"written to {path}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presets", nargs="+", default=["base", "big"], help="sizes of the model")
    parser.add_argument("--home", type=Path, default=BENCH / "fits", help="folder for the text")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def choose_limits(total_bytes: int) -> list[int]:
    """Sizes of GPUs that are smaller than this one, and its own."""
    smaller = [gigabytes * 10**9 for gigabytes in _GIGABYTES]
    return [*(each for each in smaller if each < total_bytes), total_bytes]


def _measure(job: Job) -> list[dict[str, Any]]:
    """In a process of its own: what one model leaves on the device must not be another's."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(search, job).result()


def search(job: Job) -> list[dict[str, Any]]:
    """Build a rank as a run does, and look for its largest batch within each limit."""
    recipe = load_recipe(job.recipe).recipe
    prepared = open_prepared(recipe.prepared_folder)
    shards = prepared.train()
    world = open_world("cuda", timeout_s=_TIMEOUT_S)
    learner = Learner.build(recipe, prepared.subword(), world)
    smoothing = recipe.train.label_smoothing
    way = choose_way(learner, shards, world=world, smoothing=smoothing, clock=PhaseClock(world.device))
    counted = load_recipe(job.recipe, [f"subword.vocabulary={shards.vocabulary}"]).recipe
    memory = RankMemory.of(counted, fused=way.name != "plain")
    total = max(job.gpu_bytes)
    cases = []
    for gpu_bytes in job.gpu_bytes:
        begun = time.monotonic()
        # The whole GPU needs no limit: the driver takes its part of it by itself.
        allowed = gpu_bytes - CONTEXT_BYTES if gpu_bytes < total else gpu_bytes
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(allowed / total, world.device)
        estimated = memory.largest_on(gpu_bytes)
        case: dict[str, Any] = {"gpu_bytes": gpu_bytes, "estimated_tokens": estimated, "way": way.name}
        try:
            case |= _compare(learner, way, shards, memory=memory, estimated=estimated)
        except TandemError as error:
            case["error"] = str(error)
        cases.append({**case, "seconds": round(time.monotonic() - begun, 2)})
    return cases


def _compare(
    learner: Learner, way: Way, shards: ShardSet, *, memory: RankMemory, estimated: int
) -> dict[str, Any]:
    found = find_capacity(way.learn, shards, "packed", buckets=learner.buckets)
    torch.cuda.reset_peak_memory_stats()
    _fits(learner, way, shards, tokens=found)
    peak = torch.cuda.max_memory_allocated()
    counted = memory.state + memory.pass_bytes(source_tokens=found, target_tokens=found)
    return {
        "found_tokens": found,
        "estimated_of_found": round(estimated / found, 3),
        "estimate_fits": estimated > 0 and _fits(learner, way, shards, tokens=estimated),
        "peak_bytes": peak,
        "counted_bytes": counted,
        "counted_of_peak": round(counted / peak, 3),
    }


def _fits(learner: Learner, way: Way, shards: ShardSet, *, tokens: int) -> bool:
    shape = BatchShape(layout="packed", source_tokens=tokens, target_tokens=tokens)
    return fits(way.learn, build_worst(shards, shape), buckets=learner.buckets)


def _write_result(result: Mapping[str, Any], folder: Path) -> Path:
    gpu = re.sub("[^a-z0-9]+", "-", result["device"].lower())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-fits-{gpu}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def build_table(cases: Sequence[Mapping[str, Any]]) -> Table:
    """One line for each model and GPU."""
    table = Table("model", "GPU memory", "estimate: tokens a side", "it fits", "--fit", "counted of peak")
    for case in cases:
        most = ", the most" if case["estimated_tokens"] == MOST_TOKENS else ""
        cells = [case["size"], f"{case['gpu_bytes'] / 1e9:.0f} GB", f"{case['estimated_tokens']:,}{most}"]
        if "error" in case:
            cells += ["", "does not fit", ""]
        else:
            fit = "yes" if case["estimate_fits"] else "NO"
            cells += [fit, f"{case['found_tokens']:,}", f"{100 * case['counted_of_peak']:.1f} %"]
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main()
