"""Measures training on a GPU: Tandem's own command beside torch.nn.Transformer and Hugging Face Marian on one text.

On a CPU it runs too, for trying it out: --device cpu --presets tiny --steps 6 --tokens 512.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from tandem.config import ModelSection, load_recipe
from tandem.data.prepared import open_prepared

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.corpus import Synthetic, prepare_corpus
from benchmarks.gpu.ours import BareJob, RunJob, measure_bare, measure_run
from benchmarks.gpu.peers import PEERS, PeerJob, measure_peer
from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.program import BENCH

from tandem.estimate.flops import Lengths, training_flops

_RESULTS = Path(__file__).parent / "results"
_PARTS = ("run", "bare", "peers", "stock")
_RUN, _BARE = "tandem train", "tandem, bare step"
_MOST_LOST = 0.03
PEAK_FLOPS = 790e12
"""What matrix products in bf16 reach on one H200, a second."""
_REFERENCE_TOKENS = 50_000 * 4 * 128 * 28.0
"""Target tokens of the reference's day: 50,000 steps of four GPUs with 128 pairs each."""

_DEFINITIONS = {
    "target_tokens_per_s": "target tokens without padding, end marks included, over the seconds of a step: median over "
    "the steps that count",
    "full_target_tokens_per_s": "tandem train: target tokens of the steps that count over the seconds on the wall from "
    "the first to the last of them, with data loading, log, clock and checkpoints",
    "bare step": "the same step on updates that are loaded already, without loader, log, clock or checkpoints: "
    "median of blocks, each timed from an idle device until it is idle again",
    "lost": "1 - full_target_tokens_per_s of the run / target_tokens_per_s of the bare step",
    "mfu": "3 x forward operations of real tokens (products and attention, no padding) a second over 790 TFLOP/s; "
    "tandem train by full_target_tokens_per_s",
    "peers": "bf16 autocast, fused AdamW, eager; pairs sorted by their longer side in pools of 100 batches, and on the "
    "device beforehand; no clipping, no log, no checkpoints, constant learning rate; seconds of each step by events in "
    "the device's queue",
    "stock": "peers with torch as it is; elsewhere cuDNN's attention is switched off for them, which makes them faster",
    "anatomy": "times of kernels in the bare step, summed by what their names say they are for, in ms a step",
    "reference_day": "717 million target tokens, 50,000 steps of 4 x 128 pairs; minutes by full_target_tokens_per_s, "
    "and at 790 TFLOP/s",
}


def main() -> None:
    """Make the text, measure what is asked for, write the result file and print the tables."""
    options = _read_options()
    text = Synthetic(
        pairs=options.pairs, vocabulary=options.vocabulary, longest=min(249, options.tokens // 4)
    )
    home = options.home / f"{options.device}-{options.tokens}-{text.pairs}-{text.vocabulary}"
    begun = time.monotonic()
    recipes = prepare_corpus(text, home / "text", presets=options.presets, target_tokens=options.tokens)
    setting = _describe_text(recipes[0]) | {"seconds_to_prepare": round(time.monotonic() - begun, 1)}
    cases: dict[str, dict[str, Any]] = {}
    machine = describe_machine(_peer_versions())
    for recipe in recipes:
        for side, measure in _jobs(recipe, home, options).items():
            case = _measure(measure)
            print(f"{recipe.stem}, {side}: {case.get('target_tokens_per_s', case.get('error'))}", flush=True)
            cases[f"{recipe.stem}, {side}"] = {"size": recipe.stem, "side": side, **case}
            # Each time, so that a run that is cut short leaves what it has.
            result = _compose(cases, options, machine=machine, setting=setting, recipes=recipes)
            path = _write_result(result, options)
    _print_tables(result)
    print(f"written to {path}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--presets", nargs="+", default=["base", "big"], help="sizes of the model")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS), help="what to measure")
    parser.add_argument("--tokens", type=int, default=32_000, help="target tokens of an update")
    parser.add_argument("--pairs", type=int, help="of made-up text; 1,000,000, or 4,000 on a CPU")
    parser.add_argument("--vocabulary", type=int, default=Synthetic().vocabulary, help="pieces, joint")
    parser.add_argument("--steps", type=int, default=600, help="of tandem train")
    parser.add_argument("--warmup", type=int, default=50, help="steps of tandem train that do not count")
    parser.add_argument("--checkpoint-steps", type=int, default=500, help="from one checkpoint to the next")
    parser.add_argument("--bare-steps", type=int, default=200, help="of the bare step")
    parser.add_argument("--peer-steps", type=int, default=40, help="of each peer that count")
    parser.add_argument("--peer-warmup", type=int, default=10, help="of each peer that do not")
    parser.add_argument("--home", type=Path, default=BENCH / "train_gpu", help="folder for text and runs")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="a.b=c", help="values of the recipe to change"
    )
    options = parser.parse_args()
    options.pairs = options.pairs or (Synthetic().pairs if options.device == "cuda" else 4000)
    if options.device == "cpu":
        # Enough to see that everything runs.
        options.warmup, options.bare_steps = min(options.warmup, options.steps // 2), options.steps
        options.peer_steps, options.peer_warmup = options.steps, 1
        options.checkpoint_steps = max(options.warmup + 1, options.steps - 2)
    if options.steps < options.warmup + 2:
        parser.error("--steps must be at least two more than --warmup")
    return options


def _describe_text(recipe: Path) -> dict[str, Any]:
    shards = open_prepared(load_recipe(recipe).recipe.prepared_folder).train()
    source, target = (
        side.astype(np.int64) + 1 for side in shards.lengths(np.arange(len(shards.blocks.pairs)))
    )
    return {
        "pairs": len(shards),
        "vocabulary": shards.vocabulary,
        "mean_source_tokens": round(float(source.mean()), 3),
        "mean_target_tokens": round(float(target.mean()), 3),
        "longest": [shards.longest_source, shards.longest_target],
    }


def _lengths(recipe: Path) -> Lengths:
    shards = open_prepared(load_recipe(recipe).recipe.prepared_folder).train()
    source, target = (
        side.astype(np.int64) + 1 for side in shards.lengths(np.arange(len(shards.blocks.pairs)))
    )
    return Lengths.of(source, target)


def _jobs(recipe: Path, home: Path, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is to be measured at one size, by the name of the side."""
    jobs: dict[str, Callable[[], dict[str, Any]]] = {}
    overrides = tuple(options.set)
    if "run" in options.parts:
        run = RunJob(
            recipe=recipe,
            run=home / "runs" / recipe.stem,
            device=options.device,
            steps=options.steps,
            warmup=options.warmup,
            checkpoint_steps=options.checkpoint_steps,
            overrides=overrides,
        )
        jobs[_RUN] = partial(measure_run, run)
    if "bare" in options.parts:
        bare = BareJob(
            recipe=recipe,
            run=home / "runs" / f"{recipe.stem}-bare",
            device=options.device,
            steps=options.bare_steps,
            warmup=min(options.warmup, options.bare_steps),
            overrides=overrides,
        )
        jobs[_BARE] = partial(measure_bare, bare)
    loaded = load_recipe(recipe).recipe
    for part, ending in (("peers", ""), ("stock", ", stock")):
        for peer in PEERS if part in options.parts else ():
            job = PeerJob(
                peer=peer,
                prepared=loaded.prepared_folder,
                model=loaded.model,
                tokens=options.tokens,
                device=options.device,
                steps=options.peer_steps,
                warmup=options.peer_warmup,
                cudnn_attention=part == "stock",
            )
            jobs[f"{peer}{ending}"] = partial(measure_peer, job)
    return jobs


def _measure(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """In a process of its own: what one side leaves on the device must not be another's; one that fails says why."""
    begun = time.monotonic()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            found = pool.submit(measure).result()
        except Exception as error:  # noqa: BLE001  (the others are still worth measuring)
            found = {"error": f"{type(error).__name__}: {error}"[-3000:]}
    return {**found, "all_s": round(time.monotonic() - begun, 1)}


def _compose(
    cases: Mapping[str, Mapping[str, Any]],
    options: argparse.Namespace,
    *,
    machine: Mapping[str, Any],
    setting: Mapping[str, Any],
    recipes: list[Path],
) -> dict[str, Any]:
    lengths = _lengths(recipes[0])
    models = {recipe.stem: load_recipe(recipe).recipe.model for recipe in recipes}
    flops = {
        size: training_flops(model, vocabulary=setting["vocabulary"], lengths=lengths)
        for size, model in models.items()
    }
    judged = [{**case, **_mfu(case, flops[case["size"]])} for case in cases.values()]
    return {
        "benchmark": "train_gpu",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "device": _device_name(options.device),
        "command": command_line(),
        "definitions": _DEFINITIONS,
        "text": setting,
        "target_tokens_an_update": options.tokens,
        "checkpoint_steps": options.checkpoint_steps,
        "models": {size: _shape(model) for size, model in models.items()},
        "mflop_per_target_token": {size: round(each / 1e6, 1) for size, each in flops.items()},
        "cases": judged,
        "lost": {size: lost for size in models if (lost := _lost(cases, size)) is not None},
        "ratios": {size: _ratios(cases, size) for size in models},
        "reference_day": {size: _reference_day(cases, size, flops[size]) for size in models},
    }


def _speed(case: Mapping[str, Any] | None) -> float:
    """The figure that counts: for a whole run, with everything."""
    held = case or {}
    return float(held.get("full_target_tokens_per_s", held.get("target_tokens_per_s", 0.0)))


def _mfu(case: Mapping[str, Any], flops: float) -> dict[str, float]:
    return {"mfu": round(_speed(case) * flops / PEAK_FLOPS, 4)} if _speed(case) else {}


def _lost(cases: Mapping[str, Mapping[str, Any]], size: str) -> float | None:
    run, bare = (_speed(cases.get(f"{size}, {side}")) for side in (_RUN, _BARE))
    return round(1 - run / bare, 4) if run and bare else None


def _ratios(cases: Mapping[str, Mapping[str, Any]], size: str) -> dict[str, float]:
    ours = _speed(cases.get(f"{size}, {_RUN}"))
    sides = [f"{peer}{ending}" for ending in ("", ", stock") for peer in PEERS]
    rates = {side: _speed(cases.get(f"{size}, {side}")) for side in sides}
    return {side: round(ours / rate, 2) for side, rate in rates.items() if ours and rate}


def _reference_day(cases: Mapping[str, Mapping[str, Any]], size: str, flops: float) -> dict[str, float]:
    rate = _speed(cases.get(f"{size}, {_RUN}"))
    limit = _REFERENCE_TOKENS * flops / PEAK_FLOPS / 60
    if not rate:
        return {}
    minutes = _REFERENCE_TOKENS / rate / 60
    return {
        "target_tokens": _REFERENCE_TOKENS,
        "minutes": round(minutes, 2),
        "minutes_at_limit": round(limit, 2),
        "share_of_limit": round(limit / minutes, 4),
    }


def _shape(model: ModelSection) -> dict[str, Any]:
    names = "width", "heads", "encoder_layers", "decoder_layers", "feed_forward", "dropout", "norm_place"
    return {name: getattr(model, name) for name in names}


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "cpu"


def _peer_versions() -> dict[str, str]:
    try:
        return {"transformers": version("transformers")}
    except PackageNotFoundError:
        return {}


def _write_result(result: Mapping[str, Any], options: argparse.Namespace) -> Path:
    name = f"{result['date']}-train-gpu-{machine_slug(options.device)}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / name
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_tables(result: Mapping[str, Any]) -> None:
    cases = {(case["side"], case["size"]): case for case in result["cases"]}
    sizes = list(result["models"])
    console = Console(highlight=False, width=150)
    console.print(_speed_table(cases, sizes))
    console.print(_anatomy_table(cases, sizes))
    for size in sizes:
        run = cases.get((_RUN, size), {})
        if "error" not in run and run:
            console.print(
                f"{size}: {run['full_target_tokens_per_s']:,.0f} target tokens/s on the wall, "
                f"{run['target_tokens_per_s']:,.0f} by its own clock; {run['layout']}, {run['batches_per_update']} "
                f"batches an update; {run['step_ms']} ms a step: {run['phases_ms']}"
            )
        if (lost := result["lost"].get(size)) is not None:
            console.print(
                f"{size}: {lost:.2%} lost between bare step and whole run, at most {_MOST_LOST:.0%} wanted"
            )
        if day := result["reference_day"][size]:
            console.print(
                f"{size}: {day['target_tokens']:,.0f} target tokens in {day['minutes']} minutes; "
                f"{day['minutes_at_limit']} at the limit"
            )
        console.print(f"{size}: tandem train over the others: {result['ratios'][size]}")
    for case in result["cases"]:
        if "error" in case:
            console.print(f"{case['size']}, {case['side']} failed: {case['error']}", markup=False)


def _speed_table(cases: Mapping[tuple[str, str], Mapping[str, Any]], sizes: list[str]) -> Table:
    columns = [f"{size}{ending}" for size in sizes for ending in (": tokens/s, MFU", ", stock torch")]
    table = Table("", *columns)
    for side in (_RUN, _BARE, *PEERS):
        cells = [_cell(cases.get((f"{side}{ending}", size))) for size in sizes for ending in ("", ", stock")]
        table.add_row(side, *cells)
    return table


def _cell(case: Mapping[str, Any] | None) -> str:
    if case is None:
        return ""
    return "failed" if "error" in case else f"{_speed(case):,.0f}, {case['mfu']:.1%}"


def _anatomy_table(cases: Mapping[tuple[str, str], Mapping[str, Any]], sizes: list[str]) -> Table:
    table = Table("ms of a bare step", *sizes)
    held = {size: cases.get((_BARE, size), {}) for size in sizes}
    found = {size: case["anatomy"]["by_class_ms"] for size, case in held.items() if "anatomy" in case}
    for name in next(iter(found.values()), {}):
        table.add_row(name, *(f"{found[size][name]:.2f}" if size in found else "" for size in sizes))
    table.add_row("step", *(f"{held[size]['step_ms']:.2f}" if size in found else "" for size in sizes))
    return table


if __name__ == "__main__":
    main()
