"""Asks whether a dashboard that is open for a day grows: the memory of its page and of its server, at high speed."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page
from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars
from tandem.progress import Progress
from tandem.runlog.layout import RunLayout

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.dashboard_served import Served, browsing, serving
from benchmarks.day_log import DAY_S, DayLog
from benchmarks.machine import describe_machine, machine_slug
from benchmarks.program import BENCH

__all__ = ["main"]

_RESULTS = Path(__file__).parent / "results"
_POINTS = 20
_TICK_S = 0.2
_COMPARED = 4
_FLAT = 0.10
_MEGA = 1_000_000
_MOST_BYTES = 5 * _MEGA
_TABS = ("step", "hosts", "data", "answers", "log", "learning")
_DEFINITIONS = {
    "log": "simulated: two ranks, a step a second, two hosts sampled once a second, an evaluation and a checkpoint "
    "every 900 steps, a restart every 20,000; written while the page is open, many times as fast as the clock",
    "page": "in Chromium; between two points all parts of the page are opened one after the other, so that every "
    "figure has been drawn and taken down; measured at the part it opens with",
    "heap_bytes": "the page's JavaScript heap in use after a forced garbage collection; nodes, listeners: DOM nodes "
    "and event listeners that the browser counts then",
    "server_bytes": "resident memory of the server's process",
    "server_own_bytes": "the part of it that no file holds: what the system cannot take back without swapping",
    "server_peak_bytes": "the most that was resident since the point before: while answers are judged, the "
    "files of the columns are in it",
    "fresh": "the same of a server that is started at the end of the day and of a page opened there, after one round "
    "through its parts: with the run, what there is to show grows too (evaluations, lines of the event log, each up to "
    "a bound)",
    "over_fresh": "what the page and the server that were there all day have more than those, as a share of them",
    "growth": "median of the last four points over that of the four from the fourth on, less 1: before, figures still "
    "fill up to the points that a screen shows",
    "is_page_flat": f"whether the page that was open all day has less than {_FLAT:.0%} of nodes and less than "
    f"{_MOST_BYTES / _MEGA:.0f} MB of heap over fresh; code that has run more often is compiled and counts as heap",
    "is_server_flat": f"whether the server's memory, resident and its own, grew by less than {_FLAT:.0%} between these "
    "groups of points",
    "server_bytes_a_step": "growth of the server's own memory over steps between these groups of points",
}


def main() -> None:
    """Let a day pass, measure, write the result file and print the table."""
    options = _read_options()
    machine = describe_machine({})
    home = BENCH / "dashboard-day"
    shutil.rmtree(home, ignore_errors=True)
    try:
        points, fresh = _measure(
            home / "day", seconds=options.seconds, real_s=60 * options.minutes, points=options.points
        )
        log_bytes = sum(path.stat().st_size for path in RunLayout(home / "day").log.iterdir())
    finally:
        shutil.rmtree(home, ignore_errors=True)
    result = {
        "benchmark": "dashboard-day",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "definitions": _DEFINITIONS,
        "seconds": options.seconds,
        "minutes": options.minutes,
        "log_bytes": log_bytes,
        "points": points,
        "fresh": fresh,
        **_judge(points, fresh),
    }
    path = _write_result(result, options.out)
    _print_table(result)
    print(f"written to {os.path.relpath(path)}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=DAY_S, help="length of the simulated day")
    parser.add_argument("--minutes", type=float, default=8.0, help="in which it passes")
    parser.add_argument("--points", type=int, default=_POINTS, help="how often is measured, at least 8 times")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _measure(
    run: Path, *, seconds: int, real_s: float, points: int
) -> tuple[list[dict[str, int]], dict[str, int]]:
    # The clock of the log runs ahead of this one: to a reader, the run has just spoken.
    log = DayLog(run, seconds=seconds, begun_ns=time.time_ns())
    log.advance(60)
    found = []
    with Bars() as progress, serving(run) as server, browsing() as browser:
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.goto(server.address)
        page.wait_for_selector("#panel-learning .main-svg")
        session = page.context.new_cdp_session(page)
        for number in range(1, points + 1):
            _pass(log, until=seconds * number // points, real_s=real_s / points, page=page, progress=progress)
            found.append(_take(log, server, session))
        return found, _take_fresh(log, browser, run)


def _take_fresh(log: DayLog, browser: Browser, run: Path) -> dict[str, int]:
    with serving(run) as server:
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        page.goto(server.address)
        page.wait_for_selector("#panel-learning .main-svg")
        for tab in _TABS:
            _open(page, tab)
            page.wait_for_timeout(2_000)
        return _take(log, server, page.context.new_cdp_session(page))


def _open(page: Page, tab: str) -> None:
    page.evaluate("key => document.getElementById(`tab-${key}`).click()", tab)


def _pass(log: DayLog, *, until: int, real_s: float, page: Page, progress: Progress) -> None:
    """Let a part of the day pass, while somebody goes through the page."""
    begun, first = time.monotonic(), log.second
    with progress.bar(f"to {until / 3600:.1f} h", unit="s", total=until - first) as bar:
        while log.second < until:
            share = min(1.0, (time.monotonic() - begun) / real_s)
            due = first + round(share * (until - first)) - log.second
            log.advance(due)
            bar.advance(due)
            _open(page, _TABS[min(len(_TABS) - 1, int(share * len(_TABS)))])
            page.wait_for_timeout(1000 * _TICK_S)
    # The page has caught up when it shows the last step.
    deadline = time.monotonic() + 120
    step = f"step {log.second:,}"
    while step not in (page.text_content("#way") or "") and time.monotonic() < deadline:
        page.wait_for_timeout(1000 * _TICK_S)


def _take(log: DayLog, server: Served, session: CDPSession) -> dict[str, int]:
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")
    counted = session.send("Memory.getDOMCounters")
    session.send("HeapProfiler.disable")
    return {
        "second": log.second,
        "heap_bytes": int(heap["usedSize"]),
        "nodes": int(counted["nodes"]),
        "listeners": int(counted["jsEventListeners"]),
        **_server_memory(server.process.pid),
    }


def _server_memory(process: int) -> dict[str, int]:
    status = Path(f"/proc/{process}/status").read_text()
    kilobytes = {
        name: int(value.split()[0])
        for name, _, value in (line.partition(":") for line in status.splitlines())
        if name in ("VmRSS", "VmHWM", "RssAnon")
    }
    # From here on the peak is counted anew.
    Path(f"/proc/{process}/clear_refs").write_text("5")
    return {
        "server_bytes": 1024 * kilobytes["VmRSS"],
        "server_own_bytes": 1024 * kilobytes["RssAnon"],
        "server_peak_bytes": 1024 * kilobytes["VmHWM"],
    }


def _judge(points: Sequence[Mapping[str, int]], fresh: Mapping[str, int]) -> dict[str, Any]:
    early, late = points[3 : 3 + _COMPARED], points[-_COMPARED:]

    def growth(name: str) -> float:
        return round(median(each[name] for each in late) / median(each[name] for each in early) - 1, 4)

    names = ("heap_bytes", "nodes", "listeners", "server_bytes", "server_own_bytes")
    grown = {name: growth(name) for name in names}
    own = "server_own_bytes"
    more = median(each[own] for each in late) - median(each[own] for each in early)
    steps = median(each["second"] for each in late) - median(each["second"] for each in early)
    over = {name: round(median(each[name] for each in late) / fresh[name] - 1, 4) for name in names}
    return {
        "growth": grown,
        "over_fresh": over,
        "is_page_flat": over["nodes"] < _FLAT and over["heap_bytes"] * fresh["heap_bytes"] < _MOST_BYTES,
        "is_server_flat": max(grown["server_bytes"], grown[own]) < _FLAT,
        "server_bytes_a_step": round(more / max(1, steps), 1),
    }


def _write_result(result: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-dashboard-day-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(result: Mapping[str, Any]) -> None:
    table = Table("hours", "page's heap, MB", "nodes", "listeners", "server, MB", "its own, MB", "peak, MB")
    for column in table.columns:
        column.justify = "right"
    for each in result["points"]:
        table.add_row(
            f"{each['second'] / 3600:.1f}",
            f"{each['heap_bytes'] / _MEGA:.1f}",
            f"{each['nodes']:,}",
            f"{each['listeners']:,}",
            f"{each['server_bytes'] / _MEGA:.0f}",
            f"{each['server_own_bytes'] / _MEGA:.0f}",
            f"{each['server_peak_bytes'] / _MEGA:.0f}",
        )
    console = Console(highlight=False)
    console.print(table)
    for name in ("growth", "over_fresh"):
        shares = ", ".join(f"{each} {share:+.1%}" for each, share in result[name].items())
        console.print(f"{name.replace('_', ' ')}: {shares}")
    console.print(f"the server's own memory grew by {result['server_bytes_a_step']} bytes a step")


if __name__ == "__main__":
    main()
