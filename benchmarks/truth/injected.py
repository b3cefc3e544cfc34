"""Trains runs with faults that are really injected, labels each by what the injector did, and then judges it.

One command trains and judges them all; with `--keep FOLDER` those that are there are not trained again. A run's label
lies in `truth.json` beside it before any verdict is asked: what the fault took of the run's time is what its steps took
beyond those of the same run while it was left alone.
"""

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.truth.injected_cases import CASES, Case
from benchmarks.truth.injectors import Account
from benchmarks.truth.labels import Label
from benchmarks.truth.scene import Scene, Watch, alone, in_lab, step_ends_ns
from benchmarks.truth.score import Row, complaint, confusion_table, score_run, tally

from tandem.observe.series.fold import read_series
from tandem.observe.verdicts import judge_run

__all__ = ["Taken", "label_injected", "measure_taken", "train_injected"]

_RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
_PATIENCE_S = 400.0
_LOOK_S = 0.2
_FIRST = 3
"""Steps that are slower than all others: memory is found, code is compiled."""
_NETWORK = ((0.25, "yes"), (0.10, "partly"), (-math.inf, "no"))
_COMPUTING = ((0.9, "yes"), (0.75, "partly"), (-math.inf, "no"))
_HEALTHY_EXCHANGE = 0.06
"""Share of a step that the exchange takes at most in a lab whose link is left alone."""
_MEASURED = (
    "duration",
    "schedule",
    "data",
    "checkpoint_files",
    "checkpoint_size",
    "step_time",
    "step_network",
)
_FEW_EVALUATIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a fault took of the time of a run's steps, between two bounds."""

    healthy_step_s: float
    injected_step_s: float
    low: float
    """Share of all steps' time; the spread of the healthy steps is between the bounds."""
    high: float
    steps: int


def measure_taken(ends: Sequence[tuple[int, int]], *, begun_ns: int, every: int | None) -> Taken:
    """From the ends of steps; with evaluations every so many, those after one hold its time and do not count."""
    pairs = [
        (before, after, (after - before) / 1e9)
        for (step, before), (following, after) in pairwise(ends)
        if following == step + 1 and step > _FIRST and (every is None or step % every)
    ]
    healthy = [seconds for _, after, seconds in pairs if after <= begun_ns]
    struck = [seconds for _, after, seconds in pairs if after > begun_ns]
    if len(healthy) < _FIRST or not struck:
        raise RuntimeError(f"{len(healthy)} healthy steps and {len(struck)} others are too few to tell")
    usual, off = fmean(healthy), 2 * stdev(healthy) / math.sqrt(len(healthy))
    whole = sum(healthy) + sum(struck)
    bounds = [(sum(struck) - len(struck) * (usual + move)) / whole for move in (off, -off)]
    return Taken(
        healthy_step_s=usual,
        injected_step_s=fmean(struck),
        low=max(0.0, bounds[0]),
        high=max(0.0, bounds[1]),
        steps=len(ends),
    )


def label_injected(case: Case, taken: Taken | None) -> Mapping[str, frozenset[str]]:
    """The right verdicts by question; what the injection does not settle is not asked."""
    labels = {key: frozenset({"measured"}) for key in _MEASURED}
    few = {"cannot tell"} if taken and taken.steps < _FEW_EVALUATIONS * case.evaluate_every else set[str]()
    labels |= {key: frozenset({*answer.split(" or "), *few}) for key, answer in case.answers.items()}
    if not case.is_lab:
        labels["network"] = frozenset({"no"})
    if taken is None:
        # What a link of a known rate takes, no healthy run beside it says.
        if case.is_lab and case.rate == "none":
            labels["network"] = _between(0.0, _HEALTHY_EXCHANGE, _NETWORK)
        return labels
    if case.is_lab:
        is_theirs = case.kind == "network"
        low, high = (taken.low, taken.high) if is_theirs else (0.0, 0.0)
        network = _between(low, high + _HEALTHY_EXCHANGE, _NETWORK)
        labels |= {"network": network} if len(network) < len(_NETWORK) else {}
    if case.kind == "ranks":
        return labels  # no clock of the run tells what it computes from what it stands still
    # Of a rank that stands still the clock says that it computes: by the mean rank, half of what is lost.
    lost = taken.low / 2 if case.kind == "rank" else taken.low
    gpus = _between(1 - taken.high - 2 * _HEALTHY_EXCHANGE, 1 - lost, _COMPUTING)
    if len(gpus) < len(_COMPUTING):
        labels["gpus"] = gpus | ({"partly"} if "yes" in gpus else set())
    return labels


def _between(low: float, high: float, borders: Sequence[tuple[float, str]]) -> frozenset[str]:
    """Every verdict of a share between two."""
    verdicts = [verdict for _, verdict in borders]
    first, last = (
        next(place for place, (border, _) in enumerate(borders) if share >= border) for share in (high, low)
    )
    return frozenset(verdicts[first : last + 1])


def train_injected(case: Case, home: Path, *, watch: Watch | None = None) -> Path:
    """Train, inject and label, unless that was done before; the folder with the run and `truth.json`."""
    folder = home / case.name
    if (folder / "truth.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begun, account = time.monotonic(), Account()
    if case.is_lab:
        place = in_lab(folder, case.name, case.words, rate=case.rate, watch=watch)
    else:
        place = alone(folder, case.name, case.words, watch=watch)
    with place as scene:
        code = _suffer(case, scene, account)
    if code and case.kind != "learning":
        said = (folder / f"{case.name}.txt").read_text()[-1500:]
        raise RuntimeError(f"{case.name} ended with {code}:\n{said}")
    taken = None
    if case.inject is not None and case.kind != "learning":
        ends = step_ends_ns(folder / "runs" / case.name)
        # What a slow disk takes, it takes where checkpoints and evaluations are written.
        every = None if case.kind == "disk" else case.evaluate_every
        taken = measure_taken(ends, begun_ns=account.begun_ns, every=every)
    truth = {
        "case": case.name,
        "kind": case.kind,
        "injected": asdict(account),
        "taken": taken and asdict(taken),
        "labels": {key: sorted(verdicts) for key, verdicts in label_injected(case, taken).items()},
        "seconds": round(time.monotonic() - begun, 1),
    }
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    return folder


def _suffer(case: Case, scene: Scene, account: Account) -> int:
    """Leave the run alone for a while, inject until it ends; its exit status."""
    if case.inject is not None:
        scene.wait_for_step(_FIRST)
        time.sleep(case.healthy_s)
        scene.wait_for_step(_FIRST + case.healthy_steps)
    with nullcontext() if case.inject is None else case.inject(scene, account):
        scene.process.wait(_PATIENCE_S)
    return scene.process.returncode


def main() -> None:
    """Train what is not there, judge all, print what was wrong, and write the result file."""
    options = _read_options()
    cases = [case for case in CASES if not options.only or case.name in options.only]
    if options.list:
        sys.stdout.writelines(f"{case.kind:<9}{case.name}\n" for case in cases)
        return
    begun, rows, failed = time.monotonic(), list[Row](), list[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            try:
                folder = train_injected(case, options.keep or Path(scratch))
            except (RuntimeError, OSError) as error:
                failed.append(f"{case.name}: {error}")
                sys.stderr.write(f"failed: {failed[-1]}\n")
                continue
            judged = [] if options.train_only else list(_judge(case, folder))
            rows += judged
            sys.stdout.write(_line(case, folder, judged))
            sys.stdout.flush()
    if rows:
        sys.stdout.write(f"\n{confusion_table(rows)}\n")
        sys.stdout.writelines(f"{complaint(row)}\n" for row in rows if row.outcome != "right")
    if rows and not options.only:
        path = _write_result(rows, failed, seconds=time.monotonic() - begun)
        sys.stdout.write(f"written: {path.name}\n")
    sys.exit(bool(failed) or tally(rows)["confidently wrong"] > 0)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="only these runs; writes no result file")
    parser.add_argument("--keep", type=Path, help="keep run folders here, and train none again that is here")
    parser.add_argument("--train-only", action="store_true", help="train and label, and judge nothing")
    parser.add_argument("--list", action="store_true", help="name the runs")
    return parser.parse_args()


def _judge(case: Case, folder: Path) -> Iterator[Row]:
    truth = json.loads((folder / "truth.json").read_text())
    labels = {key: Label(verdicts=frozenset(verdicts)) for key, verdicts in truth["labels"].items()}
    yield from score_run(case.name, "injected", labels, judge_run(read_series(folder / "runs" / case.name)))


def _line(case: Case, folder: Path, judged: Sequence[Row]) -> str:
    truth = json.loads((folder / "truth.json").read_text())
    taken = truth["taken"]
    share = f"{taken['low']:4.0%} to {taken['high']:4.0%} of the time taken" if taken else ""
    counts = {name: count for name, count in tally(judged).items() if count}
    return f"{case.name:<26} {truth['seconds']:5.0f} s  {share:<32} {counts or ''}\n"


def _write_result(rows: Sequence[Row], failed: Sequence[str], *, seconds: float) -> Path:
    now = datetime.now(UTC)
    result = {
        "benchmark": "injected",
        "date": now.isoformat(timespec="seconds"),
        "command": command_line(),
        "machine": describe_machine({}),
        "seconds": round(seconds, 1),
        "runs": len({row.run for row in rows}),
        "failed": list(failed),
        "answers": len(rows),
        **tally(rows),
        "rows": [asdict(replace(row, answer="") if row.outcome == "right" else row) for row in rows],
    }
    path = _RESULTS / f"{now:%Y-%m-%d}-injected-{machine_slug()}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return path


if __name__ == "__main__":
    main()
