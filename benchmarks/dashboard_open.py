"""Measures how long a long run takes to stand in the dashboard's page: its progress, its numbers, its first figures."""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.dashboard_served import browsing, serving
from benchmarks.machine import describe_machine, machine_slug

__all__ = ["main"]

_RESULTS = Path(__file__).parent / "results"
_WIDTH, _HEIGHT = 1300, 900
_LIMIT_S = 2.0
_PATIENCE_S = 120.0
_KINDS = ("progress", "numbers", "figure", "figures")
_LOOK = """(() => {
  const seen = (window.seen = {});
  const has = (where) => Boolean(document.querySelector(where)?.textContent);
  const painted = (kind) => requestAnimationFrame(() => setTimeout(() => (seen[kind] ??= performance.now() / 1000)));
  const look = () => {
    if (has("#way")) painted("progress");
    if (has("#way") && has("#numbers dd")) painted("numbers");
    const drawn = (chart) => chart.querySelector(".js-line, .point");
    const inView = [...document.querySelectorAll(".chart")].filter((chart) => {
      const { top, height } = chart.getBoundingClientRect();
      return height && top + 60 < innerHeight;
    });
    if (inView.some(drawn)) painted("figure");
    if (inView.length && inView.every(drawn)) painted("figures");
  };
  const everything = { childList: true, subtree: true, characterData: true, attributes: true };
  new MutationObserver(look).observe(document, everything);
})();"""
_DEFINITIONS = {
    "visits": "each with a server and a browser context of its own, from the start of the navigation until it is "
    "painted, in seconds",
    "progress": "status and progress stand in the page",
    "numbers": "the latest loss, speed and so on stand in the page",
    "figure": "the first figure has its lines",
    "figures": "so have all figures of the first screen",
}


def main() -> None:
    """Visit, write the result file and print the table."""
    options = _read_options()
    machine = describe_machine({})
    size = sum(path.stat().st_size for path in (options.run / "log").iterdir())
    visits = []
    with Bars() as progress, progress.bar("visiting", total=options.visits, unit="visits") as bar:
        for _ in range(options.visits):
            visits.append(_visit(options.run))
            bar.advance(1)
    medians = {kind: round(statistics.median(visit[kind] for visit in visits), 3) for kind in _KINDS}
    result = {
        "benchmark": "dashboard-open",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "definitions": _DEFINITIONS,
        "log_bytes": size,
        "screen": [_WIDTH, _HEIGHT],
        "visits": visits,
        "medians_s": medians,
        "is_under_limit": max(medians.values()) < _LIMIT_S,
    }
    path = _write_result(result, options.out)
    _print_table(visits, medians)
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "run", type=Path, help="as report_long.py --write writes it: 300,000 steps, sixteen ranks"
    )
    parser.add_argument("--visits", type=int, default=7)
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _visit(run: Path) -> dict[str, float]:
    with serving(run) as server, browsing() as browser:
        context = browser.new_context(viewport={"width": _WIDTH, "height": _HEIGHT})
        context.add_init_script(_LOOK)
        page = context.new_page()
        page.goto(server.address)
        until = time.monotonic() + _PATIENCE_S
        seen: dict[str, float] = {}
        while "figures" not in seen and time.monotonic() < until:
            page.wait_for_timeout(200)
            seen = page.evaluate("window.seen")
    return {kind: round(seen[kind], 3) for kind in _KINDS}


def _write_result(result: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-dashboard-open-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(visits: Sequence[Mapping[str, float]], medians: Mapping[str, float]) -> None:
    table = Table("seconds from navigation", "median", "least", "most")
    for column in table.columns[1:]:
        column.justify = "right"
    for kind in _KINDS:
        times = [visit[kind] for visit in visits]
        table.add_row(kind, *(f"{each:.2f}" for each in (medians[kind], min(times), max(times))))
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
