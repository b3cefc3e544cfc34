"""Holds what the report says of the exchange of gradients against the truth, on links of several speeds."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars
from tandem.config import load_recipe
from tandem.data.prepare import prepare
from tandem.lab import Lab
from tandem.observe.exchange import measure_exchange
from tandem.observe.series.fold import read_series
from tandem.runlog.event import ExchangeProbed, StepFinished, TrainingStarted
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import read_records
from tandem.runlog.record import Record, to_line

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.alternating import BLOCK_STEPS, is_exchanged
from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.program import BENCH

_HOME = BENCH / "exposed"
_RESULTS = Path(__file__).parent / "results"
_LIMIT = 0.1
_WARM_STEPS = 2 * BLOCK_STEPS
_PATIENCE_S = 600
_RESAMPLES = 10_000
_PORT = 29_511

_DEFINITIONS = {
    "hosts": "two network namespaces of one machine, one rank with one thread each, and a link of the given rate "
    "between them",
    "block": f"{BLOCK_STEPS} steps with exchange, then as many without, and so on, in one run: whatever else the "
    "machine does strikes both alike. The first step of each block and the first two blocks do not count",
    "step_s": "median over the steps with exchange of the slowest rank's seconds; probed ones do not count",
    "unsynchronised_s": "the same of the steps without exchange: the ranks send each other nothing",
    "truth_s": "step_s - unsynchronised_s: what the exchange really costs; low, high: its 95 % interval, from blocks "
    "drawn anew with replacement",
    "told_s": "what the report says of it, from the log of the steps with exchange alone: network_s of "
    "tandem.observe.exchange, from probes and phases",
    "wait_s": "the wait for gradients after backward alone: the lower bound that every step has",
    "probes_s": "median over the probes: slowest rank with exchange - slowest rank without",
    "error": "told_s / truth_s - 1; within 10 % is good",
    "is_within_limit": "whether that is so at every rate; nothing is said where low and high are not themselves within "
    "10 % of truth_s at every rate, as on a machine with other work: a rank that has waited for the network is then "
    "given a core sooner than one that has not, and the truth itself is off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """A link, and a model whose gradients keep it busy for about as long as a step computes."""

    rate: str
    model: str
    tokens: int


_SETTINGS = (
    _Setting(
        rate="50mbit",
        model="width: 128, heads: 4, encoder_layers: 3, decoder_layers: 3, feed_forward: 512",
        tokens=2048,
    ),
    _Setting(
        rate="200mbit",
        model="width: 256, heads: 4, encoder_layers: 2, decoder_layers: 2, feed_forward: 1024",
        tokens=1024,
    ),
    _Setting(
        rate="1gbit",
        model="width: 512, heads: 8, encoder_layers: 2, decoder_layers: 2, feed_forward: 2048",
        tokens=512,
    ),
)

_RECIPE = """
name: exposed
data:
  train:
    - builtin: {{pairs: 6000}}
  folder: {folder}
subword: {{vocabulary: 1024, max_pieces: 64}}
batch: {{target_tokens: {tokens}, shares: even}}
model: {{preset: tiny, {model}}}
train: {{max_steps: {steps}}}
evaluate: {{every_steps: null, every_minutes: null}}
checkpoint: {{every_minutes: null, keep_best: 0, keep_last: 1}}
telemetry: {{probe_steps: {probe_steps}}}
"""


def main() -> None:
    """Train at each rate, write the result file and print the table."""
    options = _read_options()
    machine = describe_machine({})
    shutil.rmtree(_HOME, ignore_errors=True)
    _HOME.mkdir(parents=True)
    rates = []
    with (
        Bars() as bars,
        Lab.up(_HOME / "lab", hosts=2) as lab,
        bars.bar("rates", total=len(_SETTINGS), unit="rates") as bar,
    ):
        for setting in _SETTINGS:
            rates.append(_measure(lab, setting, steps=options.steps))
            bar.advance(1)
    shutil.rmtree(_HOME, ignore_errors=True)
    result = {
        "benchmark": "exposed",
        "date": datetime.now(UTC).date().isoformat(),
        "command": command_line(),
        "machine": machine,
        "definitions": _DEFINITIONS,
        "steps": options.steps,
        "limit": _LIMIT,
        "rates": rates,
        "is_within_limit": _judge(rates),
    }
    path = _write_result(result, options.out)
    _print_table(result)
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=72, help="of each run")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _measure(lab: Lab, setting: _Setting, *, steps: int) -> dict[str, Any]:
    for host in lab.hosts:
        lab.link(host, "rate", setting.rate)
    folder = _HOME / setting.rate
    folder.mkdir()
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        _RECIPE.format(
            folder=folder / "data",
            tokens=setting.tokens,
            model=setting.model,
            steps=steps,
            probe_steps=2 * BLOCK_STEPS,
        )
    )
    prepare(load_recipe(recipe).recipe, workers=1)
    _train(lab, folder / "run", recipe)
    records = list(read_records(folder / "run"))
    return {"rate": setting.rate, **_compare(records, folder)}


def _train(lab: Lab, run: Path, recipe: Path) -> None:
    ranks = []
    program = str(Path(__file__).with_name("alternating.py"))
    for rank, host in enumerate(lab.hosts):
        numbers = {"RANK": rank, "LOCAL_RANK": 0, "WORLD_SIZE": len(lab.hosts), "LOCAL_WORLD_SIZE": 1}
        environment = {
            **os.environ,
            **{name: str(number) for name, number in numbers.items()},
            "MASTER_ADDR": lab.address(lab.hosts[0]),
            "MASTER_PORT": str(_PORT),
            "OMP_NUM_THREADS": "1",
        }
        with run.with_name(f"{host}.txt").open("w") as output:
            ranks.append(
                lab.start(
                    host,
                    [sys.executable, program, str(run), str(recipe)],
                    env=environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
    try:
        failed = [process.wait(_PATIENCE_S) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    if any(failed):
        raise SystemExit("\n".join(path.read_text()[-2000:] for path in run.parent.glob("h?.txt")))


def _compare(records: Sequence[Record], folder: Path) -> dict[str, Any]:
    probed = {record.event.step for record in records if isinstance(record.event, ExchangeProbed)}
    durations = _slowest(records)
    counted = {
        step: seconds
        for step, seconds in durations.items()
        if step > _WARM_STEPS and (step - 1) % BLOCK_STEPS and step not in probed
    }
    blocks: dict[int, list[float]] = {}
    for step, seconds in counted.items():
        blocks.setdefault((step - 1) // BLOCK_STEPS, []).append(seconds)
    without, exchanged = ([blocks[block] for block in blocks if block % 2 == side] for side in (0, 1))
    truth_s = _median(exchanged) - _median(without)
    low_s, high_s = _interval(exchanged, without)
    told_s, wait_s = _told(records, folder / "told")
    (started,) = [record.event for record in records if isinstance(record.event, TrainingStarted)]
    return {
        "gradient_bytes": started.gradient_bytes,
        "step_s": round(_median(exchanged), 4),
        "unsynchronised_s": round(_median(without), 4),
        "truth_s": round(truth_s, 4),
        "low": round(low_s, 4),
        "high": round(high_s, 4),
        "told_s": round(told_s, 4),
        "wait_s": round(wait_s, 4),
        "probes_s": round(_probes(records), 4),
        "probes": len(probed),
        "error": round(told_s / truth_s - 1, 4),
        "steps_s": {str(step): round(seconds, 4) for step, seconds in durations.items()},
    }


def _judge(rates: Iterable[dict[str, Any]]) -> str:
    held = list(rates)
    margins = [
        max(each["high"] - each["truth_s"], each["truth_s"] - each["low"]) / each["truth_s"] for each in held
    ]
    if not all(0 <= margin <= _LIMIT for margin in margins):
        return "cannot tell: measure with nothing else on the machine"
    return "yes" if all(abs(each["error"]) <= _LIMIT for each in held) else "no"


def _slowest(records: Iterable[Record]) -> dict[int, float]:
    """The slowest rank's seconds by step."""
    found: dict[int, float] = {}
    for event in (record.event for record in records):
        if isinstance(event, StepFinished):
            found[event.step] = max(event.duration_s, found.get(event.step, 0.0))
    return found


def _median(blocks: Sequence[Sequence[float]]) -> float:
    return float(np.median([seconds for block in blocks for seconds in block]))


def _interval(exchanged: list[list[float]], without: list[list[float]]) -> tuple[float, float]:
    dice = np.random.default_rng(1)

    def draw(blocks: list[list[float]]) -> list[list[float]]:
        return [blocks[number] for number in dice.integers(len(blocks), size=len(blocks))]

    drawn: NDArray[np.float64] = np.array(
        [_median(draw(exchanged)) - _median(draw(without)) for _ in range(_RESAMPLES // 10)]
    )
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)


def _told(records: Iterable[Record], run: Path) -> tuple[float, float]:
    """What the report says of a run whose log has the steps with exchange alone, as any other run's has."""
    log = RunLayout(run).log
    log.mkdir(parents=True)
    for record in records:
        event = record.event
        is_other = isinstance(event, StepFinished) and not (
            is_exchanged(event.step) and (event.step - 1) % BLOCK_STEPS
        )
        if record.rank is not None and not is_other:
            with RunLayout(run).rank_log(record.rank).open("ab") as file:
                file.write(to_line(record))
    exposure = measure_exchange(read_series(run))
    if exposure is None:
        raise SystemExit("the reader says nothing of the exchange")
    return exposure.network_s, exposure.wait_s


def _probes(records: Iterable[Record]) -> float:
    pairs: dict[int, list[ExchangeProbed]] = {}
    for event in (record.event for record in records):
        if isinstance(event, ExchangeProbed):
            pairs.setdefault(event.step, []).append(event)
    return float(
        np.median(
            [
                max(each.synchronised_s for each in ranks) - max(each.unsynchronised_s for each in ranks)
                for ranks in pairs.values()
            ]
        )
    )


def _write_result(result: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-exposed-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(result: dict[str, Any]) -> None:
    table = Table("link", "gradients", "step", "without", "truth", "95 % interval", "told", "wait", "error")
    for each in result["rates"]:
        table.add_row(
            each["rate"],
            f"{each['gradient_bytes'] / 1e6:.1f} MB",
            *(f"{each[name]:.3f} s" for name in ("step_s", "unsynchronised_s", "truth_s")),
            f"{each['low']:.3f} to {each['high']:.3f} s",
            *(f"{each[name]:.3f} s" for name in ("told_s", "wait_s")),
            f"{each['error']:+.1%}",
        )
    console = Console(highlight=False)
    console.print(table)
    console.print(f"all within {_LIMIT:.0%}: {result['is_within_limit']}")


if __name__ == "__main__":
    main()
