"""Judges drawn runs whose truth is known, and writes how often each verdict is right at each stated confidence.

The runs come from `benchmarks/truth/world`, which shares nothing with the verdicts but the format of the log.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.truth.reliability import draw_reliability, wilson
from benchmarks.truth.world.draw import draw
from benchmarks.truth.world.label import CANNOT_TELL, Label
from benchmarks.truth.world.truth import label_run
from benchmarks.truth.world.write import write

from tandem.cli.bars import Bars
from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run

__all__ = ["Judged", "compare", "judge_seed", "main", "summarise"]

_ROOT = Path(__file__).resolve().parents[2]
_PAGE, _FIGURE = _ROOT / "docs" / "calibration.md", _ROOT / "docs" / "calibration.svg"
_BEGIN, _END = (
    "<!-- calibration: made by benchmarks/truth/calibrate.py -->",
    "<!-- end of the calibration -->",
)
_CONFIDENCES = ("high", "medium", "low")
_CHUNK = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One answer beside its truth."""

    seed: int
    question: str
    said: str
    confidence: str
    outcome: str
    """`right`, `wrong`, `declined` where the log allowed an answer, or `rightly declined`."""
    truth: str
    accepted: tuple[str, ...]
    suffices: bool
    reason: str
    wrong_numbers: tuple[str, ...]


def judge_seed(seed: int) -> list[Judged]:
    """Draw, play, write and judge one run."""
    folder = Path(tempfile.mkdtemp(prefix="tandem-world-"))
    try:
        labels = label_run(write(draw(seed), folder / "run"))
        return [
            compare(seed, labels[finding.key], finding) for finding in judge_run(read_series(folder / "run"))
        ]
    finally:
        shutil.rmtree(folder)


def compare(seed: int, label: Label, finding: Any) -> Judged:
    """Hold an answer against its label."""
    evidence = {item.name: item.value for item in finding.evidence}
    wrong = [
        f"{name} is {evidence[name]}, truly {expected.value:.6g}"
        for name, expected in label.numbers.items()
        if name in evidence and not expected.accepts(evidence[name])
    ]
    if finding.verdict != CANNOT_TELL and label.words not in finding.answer:
        wrong.append(f"it does not say {label.words}")
    return Judged(
        seed=seed,
        question=finding.key,
        said=finding.verdict,
        confidence=str(finding.confidence),
        outcome=_outcome(label, finding.verdict, is_wrong=bool(wrong)),
        truth=label.truth,
        accepted=tuple(sorted(label.accepted)),
        suffices=label.suffices,
        reason=label.reason,
        wrong_numbers=tuple(wrong),
    )


def _outcome(label: Label, verdict: str, *, is_wrong: bool) -> str:
    if verdict == CANNOT_TELL:
        return "rightly declined" if CANNOT_TELL in label.accepted or not label.suffices else "declined"
    return "right" if verdict in label.accepted and not is_wrong else "wrong"


def summarise(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Counts by question, and for all of them, with the share that is right at each confidence."""
    questions = list(dict.fromkeys(item.question for item in judged))
    rows = []
    for question in (*questions, "all"):
        mine = [item for item in judged if question in {item.question, "all"}]
        row: dict[str, Any] = {"question": question, "answers": len(mine)}
        for confidence in _CONFIDENCES:
            answers = [item for item in mine if item.confidence == confidence]
            right = sum(item.outcome == "right" for item in answers)
            low, high = wilson(right, len(answers))
            row[confidence] = {"answers": len(answers), "right": right, "low": low, "high": high}
        row["declined"] = sum(item.outcome == "declined" for item in mine)
        row["rightly declined"] = sum(item.outcome == "rightly declined" for item in mine)
        rows.append(row)
    return rows


def main() -> None:
    """Judge the seeds, and write the result, the page and the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="first and one past the last, as 0:1000")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--out", type=Path, default=_ROOT / "benchmarks" / "results", help="folder of the result"
    )
    parser.add_argument("--page", action="store_true", help="also write docs/calibration.md and its figure")
    options = parser.parse_args()
    first, _, last = options.seeds.partition(":")
    judged = list(_judge(range(int(first), int(last)), processes=options.processes))
    rows = summarise(judged)
    result = {
        "command": command_line(),
        "machine": describe_machine({}),
        "seeds": [int(first), int(last)],
        "questions": rows,
        "wrong": [asdict(item) for item in judged if item.outcome == "wrong"],
        "declined": [asdict(item) for item in judged if item.outcome == "declined"],
    }
    path = options.out / f"{datetime.now(UTC):%Y-%m-%d}-calibration-{machine_slug()}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(_table(rows))
    for item in judged:
        if item.outcome in {"wrong", "declined"}:
            print(_line(item))
    if options.page:
        _write_page(rows, judged, path)
        _FIGURE.write_text(draw_reliability(rows), encoding="utf-8")


def _judge(seeds: range, *, processes: int) -> Iterator[Judged]:
    with (
        Bars() as bars,
        bars.bar("Judging runs", total=len(seeds), unit="runs") as bar,
        ProcessPoolExecutor(processes) as pool,
    ):
        for answers in pool.map(judge_seed, seeds, chunksize=_CHUNK):
            bar.advance(1)
            yield from answers


def _line(item: Judged) -> str:
    numbers = f" ({'; '.join(item.wrong_numbers)})" if item.wrong_numbers else ""
    special = f" [{item.reason}]" if item.reason else ""
    return f"{item.seed} {item.question}: said {item.said} ({item.confidence}), truth {item.truth}{numbers}{special}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    head = "| question | " + " | ".join(f"{name} confidence" for name in _CONFIDENCES)
    lines = [
        f"{head} | declined though the log allows an answer | rightly declined |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [_share(row[confidence]) for confidence in _CONFIDENCES]
        lines.append(
            f"| {row['question']} | {' | '.join(cells)} | {row['declined']} | {row['rightly declined']} |"
        )
    return "\n".join(lines)


def _share(counted: dict[str, Any]) -> str:
    if not counted["answers"]:
        return ""
    share = counted["right"] / counted["answers"]
    return f"{counted['right']} of {counted['answers']}: {share:.1%} ({counted['low']:.1%}–{counted['high']:.1%})"


def _write_page(rows: Sequence[dict[str, Any]], judged: Sequence[Judged], path: Path) -> None:
    before, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, marker, after = rest.partition(_END)
    if not marker:
        raise SystemExit(f"{_PAGE.name} has no room for the table: put the two markers back.")
    runs = len({item.seed for item in judged})
    wrong = sum(item.outcome == "wrong" for item in judged)
    answered = sum(item.outcome in {"right", "wrong"} for item in judged)
    figures = f"[figures](../{path.relative_to(_ROOT)})"
    text = f"{runs:,} runs, {len(judged):,} questions, {answered:,} answers, {wrong:,} of them wrong ({figures})."
    figure = "![How often answers are right at each stated confidence](calibration.svg)"
    _PAGE.write_text(
        f"{before}{_BEGIN}\n\n{text}\n\n{_table(rows)}\n\n{figure}\n\n{_END}{after}", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
