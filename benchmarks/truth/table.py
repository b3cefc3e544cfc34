"""Asks how often the verdicts are right: judges labelled runs, simulated and real, and counts.

Writes the confusion table into docs/verdicts.md and everything into a dated result file.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.truth.cases import IMPORTED, SIMULATED
from benchmarks.truth.drawn import draw_scenario
from benchmarks.truth.imported import write_imported
from benchmarks.truth.labels import label_run
from benchmarks.truth.real import REAL, train_real
from benchmarks.truth.score import Row, complaint, confusion_table, score_run, tally
from benchmarks.truth.simulate import simulate

from tandem.cli.bars import Bars
from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run

_ROOT = Path(__file__).resolve().parents[2]
_RESULTS = _ROOT / "benchmarks" / "results"
_PAGE = _ROOT / "docs" / "verdicts.md"
_MARKERS = ("<!-- truth table: made by benchmarks/truth/table.py -->", "<!-- end of the truth table -->")
_ENOUGH = 0.95

_DEFINITIONS = {
    "accepted": "the verdicts that are right for the run; several where it lies near a border",
    "right": "the verdict is one of them, and the numbers that the label names are in the evidence",
    "declined": "it said cannot tell where it could have been told",
    "wrong": "another verdict or a wrong number, with low confidence",
    "confidently wrong": "the same with medium or high confidence",
}


def main() -> None:
    """Judge all runs, write the table and the result file, and fail where the verdicts are not good enough."""
    options = _read_options()
    begun = time.monotonic()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, Bars() as bars, bars.bar("runs", unit="runs") as bar:
        for found in _judge_all(options.keep or Path(scratch), options):
            rows += found
            bar.advance(1)
    console = Console()
    console.print(Markdown(confusion_table(rows)))
    for row in rows:
        if row.outcome != "right":
            console.print(complaint(row), highlight=False, markup=False)
    counts = tally(rows)
    console.print(f"{counts['right'] / len(rows):.1%} of {len(rows)} answers right, {dict(counts)}")
    if not options.only:
        runs = {row.run for row in rows}
        write_table(_PAGE, _intro(rows) + "\n\n" + confusion_table(rows))
        console.print(
            f"written: {_write_result(rows, runs=len(runs), seconds=time.monotonic() - begun).name}"
        )
    sys.exit(counts["confidently wrong"] > 0 or counts["right"] < _ENOUGH * len(rows))


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--real", action="store_true", help="train the real short runs too (some ten minutes)"
    )
    parser.add_argument(
        "--seeds", type=int, default=1, help="simulate each run so often, with other accidents"
    )
    parser.add_argument("--drawn", type=int, default=0, help="simulate so many runs drawn at random too")
    parser.add_argument("--only", nargs="*", help="only these runs; writes no table")
    parser.add_argument(
        "--keep", type=Path, help="keep run folders here; real ones that are here are not trained again"
    )
    return parser.parse_args()


def _judge_all(home: Path, options: argparse.Namespace) -> Iterator[list[Row]]:
    def is_wanted(name: str) -> bool:
        return not options.only or name in options.only

    for seed in range(options.seeds):
        drawn = [draw_scenario(number) for number in range(0 if seed else options.drawn)]
        for scenario in filter(lambda each: is_wanted(each.name), (*SIMULATED, *drawn)):
            name = f"{scenario.name}-{seed}" if seed else scenario.name
            run = _fresh(home / "simulated" / name)
            truth = simulate(replace(scenario, seed=scenario.seed + seed), run)
            yield score_run(name, "simulated", label_run(scenario, truth), judge_run(read_series(run)))
    for case in filter(lambda each: is_wanted(each.name), IMPORTED):
        run = _fresh(home / "imported" / case.name)
        write_imported(case, run)
        yield score_run(case.name, "imported", case.labels, judge_run(read_series(run)))
    for real in filter(lambda each: is_wanted(each.name), REAL if options.real else ()):
        run = train_real(real, home / "real")
        yield score_run(real.name, "real", real.labels, judge_run(read_series(run)))


def _fresh(run: Path) -> Path:
    shutil.rmtree(run, ignore_errors=True)
    run.parent.mkdir(parents=True, exist_ok=True)
    return run


def _intro(rows: Sequence[Row]) -> str:
    kinds = {
        kind: len({row.run for row in rows if row.kind == kind}) for kind in ("simulated", "imported", "real")
    }
    counts = tally(rows)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    return (
        f"{sum(kinds.values())} labelled runs ({told}), {len(rows)} labelled answers: "
        f"{counts['right'] / len(rows):.1%} right, {counts['declined']} declined though they could have been told, "
        f"{counts['wrong']} wrong with low confidence, {counts['confidently wrong']} wrong with confidence."
    ).replace("%", " %")


def write_table(page: Path, text: str, *, markers: tuple[str, str] = _MARKERS) -> None:
    """Put a table between its markers."""
    begin, end = markers
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page.name} has no place for the table: put the two markers back.")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def _write_result(rows: Sequence[Row], *, runs: int, seconds: float) -> Path:
    now = datetime.now(UTC)
    result = {
        "benchmark": "truth",
        "date": now.isoformat(timespec="seconds"),
        "command": command_line(),
        "machine": describe_machine({}),
        "seconds": round(seconds, 1),
        "definitions": _DEFINITIONS,
        "runs": runs,
        "answers": len(rows),
        **tally(rows),
        "rows": [asdict(replace(row, answer="") if row.outcome == "right" else row) for row in rows],
    }
    path = _RESULTS / f"{now:%Y-%m-%d}-truth-{machine_slug()}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return path


if __name__ == "__main__":
    main()
