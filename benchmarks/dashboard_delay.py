"""Measures how long a step takes from the run's log to the dashboard in a browser: its number, and its point."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page
from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars
from tandem.observe.series.fold import read_series

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.dashboard_served import Served, browsing, serving, training
from benchmarks.day_log import DayLog
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.program import BENCH

__all__ = ["main"]

_RESULTS = Path(__file__).parent / "results"
_LIMIT_S = 2.0
_BEFORE = 20
_AFTER_MS = 5_000
_LOOK = """() => {
  window.seen = { number: {}, point: {} };
  const note = (kind, step) => { if (step) window.seen[kind][step] ??= Date.now() / 1000; };
  setInterval(() => {
    const told = /step ([\\d,]+)/.exec(document.getElementById("way").textContent);
    note("number", told && Number(told[1].replaceAll(",", "")));
    note("point", document.querySelector("[data-name=losses] .plot").data?.[0].x.at(-1));
  }, 10);
}"""
_DEMO = Path(__file__).resolve().parents[1] / "recipes/demo.yaml"
_DEFINITIONS = {
    "simulated": "a log of two ranks, a step a second, two hosts sampled once a second, written in real time",
    "trained": "the demo's recipe, trained meanwhile by two workers on the same machine",
    "number_s": "from the moment that a step's line is in the file (simulated), or that its step ended by the log "
    "(trained), until the page shows its number or a later one; the page is looked at every 10 ms",
    "point_s": "likewise, until the figure of losses in the page has its point or a later one",
    "p95_s": "95 % are at most that late",
}


def main() -> None:
    """Write steps, watch them arrive, write the result file and print the table."""
    options = _read_options()
    machine = describe_machine({})
    home = BENCH / "dashboard-delay"
    shutil.rmtree(home, ignore_errors=True)
    try:
        late = {
            "simulated": _measure_simulated(home / "simulated", seconds=options.seconds),
            "trained": _measure_trained(home / "trained/run", seconds=options.seconds),
        }
    finally:
        shutil.rmtree(home, ignore_errors=True)
    result = {
        "benchmark": "dashboard-delay",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "definitions": _DEFINITIONS,
        "limit_s": _LIMIT_S,
        **{
            of: {
                "steps": len(kinds["number"]),
                **{f"{kind}_s": _summary(delays) for kind, delays in kinds.items()},
                "is_under_limit": max(map(max, kinds.values())) < _LIMIT_S,
            }
            for of, kinds in late.items()
        },
    }
    path = _write_result(result, options.out)
    _print_table(result)
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="how long each is watched")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _measure_simulated(run: Path, *, seconds: int) -> dict[str, list[float]]:
    log = DayLog(run, seconds=_BEFORE + seconds, begun_ns=time.time_ns() - _BEFORE * 1_000_000_000)
    log.advance(_BEFORE)
    written: dict[int, float] = {}
    with Bars() as progress, serving(run) as server, browsing() as browser:
        page = _open(browser, server)
        with progress.bar("watching", unit="steps", total=seconds) as bar:
            while not log.is_over:
                log.advance(1)
                written[log.second] = time.time()
                bar.advance(1)
                page.wait_for_timeout(1000)
        page.wait_for_timeout(_AFTER_MS)
        seen = page.evaluate("window.seen")
    return {kind: _delays(written, seen[kind]) for kind in ("number", "point")}


def _measure_trained(run: Path, *, seconds: int) -> dict[str, list[float]]:
    with training(run, recipe=_DEMO, workers=2), serving(run) as server, browsing() as browser:
        page = _open(browser, server)
        page.wait_for_timeout(_AFTER_MS)
        begun = time.time()
        page.wait_for_timeout(1000 * seconds)
        until = time.time()
        page.wait_for_timeout(_AFTER_MS)
        seen = page.evaluate("window.seen")
    series = read_series(run)
    ended = series.begun_ns / 1e9 + series.steps.time_s
    written = {
        int(step): float(at) for step, at in zip(series.steps.step, ended, strict=True) if begun <= at < until
    }
    return {kind: _delays(written, seen[kind]) for kind in ("number", "point")}


def _open(browser: Browser, server: Served) -> Page:
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(server.address)
    page.wait_for_selector("[data-name=losses] .main-svg")
    page.evaluate(_LOOK)
    return page


def _delays(written: Mapping[int, float], seen: Mapping[str, float]) -> list[float]:
    arrived = sorted((float(step), at) for step, at in seen.items())
    never = float("inf")
    return [
        min((at for there, at in arrived if there >= step), default=never) - at_first
        for step, at_first in written.items()
    ]


def _summary(delays: Sequence[float]) -> dict[str, float]:
    ordered = sorted(delays)
    return {
        "median_s": round(ordered[len(ordered) // 2], 3),
        "p95_s": round(ordered[int(0.95 * (len(ordered) - 1))], 3),
        "most_s": round(ordered[-1], 3),
    }


def _write_result(result: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-dashboard-delay-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(result: Mapping[str, Any]) -> None:
    table = Table("seconds from the log to the page", "median", "95 % at most", "most")
    for column in table.columns[1:]:
        column.justify = "right"
    for of in ("simulated", "trained"):
        for name in ("number_s", "point_s"):
            held = result[of][name]
            told = (f"{held[each]:.2f}" for each in ("median_s", "p95_s", "most_s"))
            table.add_row(f"{of}: {name[:-2]}", *told)
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
