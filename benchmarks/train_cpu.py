"""Measures training on this machine's cores: Tandem's and other toolkits', with the same model and text in one run."""

import argparse
import json
import lzma
import os
import shlex
import shutil
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars
from tandem.data.prepared import Prepared, open_prepared
from tandem.progress import Progress

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe_machine, machine_slug
from benchmarks.measure import all_cores, time_stages
from benchmarks.program import BENCH, install
from benchmarks.trainers import PEERS, RECIPE, TANDEM, TRAINERS, Speed, Trainer, TrainJob

_RESULTS = Path(__file__).parent / "results"
_HOME = BENCH / "train"
_TEXT = _HOME / "text"
_RUN = _HOME / "run"
_BUSY = 0.5
_LANGUAGES = ("en", "de")
_FEW = 100
_THREADS = 2
_MARKS = {"<unk>", "<pad>", "<s>", "</s>"}

_DEFINITIONS = {
    "target_tokens_per_s": "target tokens without padding, end marks included, of the steps that count / seconds "
    "of these steps, one figure a repetition; start-up, warm-up, evaluation and saving are left out",
    "target_tokens_per_update": "target tokens without padding of an update, on average",
    "steps": "steps of warm-up, and as many again that count",
    "ratios": "median target_tokens_per_s of Tandem with one rank over the other's",
}


@dataclass(slots=True, kw_only=True)
class Case:
    """One program, and what was measured of it."""

    trainer: Trainer
    command: str = ""
    speeds: list[Speed] = field(default_factory=list)

    @property
    def target_tokens_per_s(self) -> float:
        """Return the median over the repetitions."""
        return statistics.median(speed.target_tokens_per_s for speed in self.speeds)

    @property
    def target_tokens_per_update(self) -> float:
        """Return the median over the repetitions."""
        return statistics.median(speed.target_tokens_per_update for speed in self.speeds)

    def to_json(self) -> dict[str, object]:
        """Return the case as it stands in a result file."""
        return {
            "side": self.trainer.name,
            "version": self.trainer.version,
            "does": self.trainer.does,
            "command": self.command,
            "target_tokens_per_s": [round(speed.target_tokens_per_s, 1) for speed in self.speeds],
            "target_tokens_per_update": round(self.target_tokens_per_update, 1),
        }


def main() -> None:
    """Install what is missing, measure, write the result file and print the table."""
    options = _options()
    cases = [Case(trainer=trainer) for trainer in TRAINERS if options.only in {None, trainer.name}]
    for case in cases:
        install(case.trainer)
    if options.install:
        return
    if (load := os.getloadavg()[0]) > _BUSY:
        print(f"this machine is busy (load {load:.1f}): figures will be too low", flush=True)
    machine = describe_machine({peer.name: peer.version for peer in PEERS})
    shutil.rmtree(_HOME, ignore_errors=True)
    _TEXT.mkdir(parents=True)
    with Bars() as progress:
        text = _write_text(options.data, options.pairs, progress)
        _measure(cases, options, progress)
    ratios = _ratios(cases)
    _print_table(cases, ratios)
    if options.only is None:
        result = {
            "benchmark": "train_cpu",
            "date": datetime.now(UTC).date().isoformat(),
            "machine": machine,
            "text": text,
            "model": RECIPE["model"],
            "threads": _THREADS,
            "steps": options.steps,
            "definitions": _DEFINITIONS,
            "cases": [case.to_json() for case in cases],
            "ratios": ratios,
        }
        print(f"written to {os.path.relpath(_write_result(result))}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data/europarl"), help="folder of train.{en,de}.xz"
    )
    parser.add_argument("--pairs", type=int, default=20_000, help="pairs to train on")
    parser.add_argument("--steps", type=int, default=10, help="steps that count, and as many before them")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each program")
    parser.add_argument("--only", choices=[trainer.name for trainer in TRAINERS], help="try one program out")
    parser.add_argument(
        "--install", action="store_true", help="install the programs to compare with, and stop"
    )
    options = parser.parse_args()
    if options.steps < 2 or options.repetitions < 1:
        parser.error("--steps must be at least 2, --repetitions at least 1")
    if all_cores() < _THREADS:
        parser.error(f"needs {_THREADS} cores")
    return options


def _write_text(data: Path, pairs: int, progress: Progress) -> dict[str, object]:
    """Prepare the text with Tandem, and write its pieces for the others, so that all learn from the same."""
    for language in _LANGUAGES:
        packed = data / f"train.{language}.xz"
        if not packed.is_file():
            raise SystemExit(f"{packed} is missing; name a folder that holds it with --data")
        with lzma.open(packed) as lines:
            (_TEXT / f"train.{language}").write_bytes(b"".join(islice(lines, pairs)))
    (_TEXT / "recipe.yaml").write_text(json.dumps(RECIPE))
    # A process of its own, because measuring waits for every child of this one.
    with progress.bar("preparing"):
        command = [Path(sys.executable).with_name("tandem"), "data", "prepare", "recipe.yaml"]
        time_stages([[[*map(str, command)]]], cores=_THREADS, folder=_TEXT)
    prepared = open_prepared(_TEXT / "prepared")
    subword = prepared.subword()
    with progress.bar("writing pieces"):
        for language, sentences in zip(_LANGUAGES, _pieces(prepared), strict=True):
            (_TEXT / f"pieces.{language}").write_text("".join(sentences), newline="\n")
            (_TEXT / f"few.{language}").write_text("".join(sentences[:_FEW]), newline="\n")
        known = [subword.source.spell([piece]) for piece in range(subword.source.pieces)]
        words = [piece for spelt in known for piece in spelt if piece not in _MARKS]
        (_TEXT / "vocabulary.txt").write_text("".join(f"{word}\n" for word in words), newline="\n")
    return {"pairs": len(prepared.train()), "vocabulary": subword.vocabulary}


def _pieces(prepared: Prepared) -> Iterator[list[str]]:
    shards, subword = prepared.train(), prepared.subword()
    sides = shards.gather(np.arange(len(shards)))
    for side, model in zip(sides, (subword.source, subword.target), strict=True):
        sentences = np.split(side.ids, np.cumsum(side.lengths)[:-1])
        yield [" ".join(model.spell(ids.tolist())) + "\n" for ids in sentences]


def _measure(cases: list[Case], options: argparse.Namespace, progress: Progress) -> None:
    """Run every program in turn, again and again."""
    with progress.bar("measuring", total=len(cases) * options.repetitions, unit="runs") as bar:
        for _ in range(options.repetitions):
            for case in cases:
                _run(case, options.steps)
                bar.advance(1)
                progress.say(f"{case.trainer.name}: {case.speeds[-1].target_tokens_per_s:,.0f} tokens/s")


def _run(case: Case, steps: int) -> None:
    shutil.rmtree(_RUN, ignore_errors=True)
    _RUN.mkdir(parents=True)
    job = TrainJob(out=_RUN, threads=_THREADS, warmup=steps)
    stages = case.trainer.stages(job)
    case.command = "; ".join(
        shlex.join([Path(word).name if word.startswith("/") else word for word in command])
        for commands in stages
        for command in commands
    )
    time_stages(stages, cores=_THREADS, folder=_RUN)
    case.speeds.append(case.trainer.speed(job))


def _ratios(cases: list[Case]) -> dict[str, float]:
    found = {case.trainer.name: case.target_tokens_per_s for case in cases}
    if TANDEM.name not in found:
        return {}
    others = {peer.name: found[peer.name] for peer in PEERS if peer.name in found}
    return {f"speed over {name}": round(found[TANDEM.name] / rate, 2) for name, rate in others.items()}


def _write_result(result: dict[str, object]) -> Path:
    _RESULTS.mkdir(exist_ok=True)
    path = _RESULTS / f"{result['date']}-train-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(cases: list[Case], ratios: dict[str, float]) -> None:
    table = Table("program", "target tokens/s", "lowest", "highest", "target tokens an update")
    for column in table.columns[1:]:
        column.justify = "right"
    for case in cases:
        rates = [speed.target_tokens_per_s for speed in case.speeds]
        figures = case.target_tokens_per_s, min(rates), max(rates), case.target_tokens_per_update
        table.add_row(
            f"{case.trainer.name} {case.trainer.version}", *(f"{figure:,.0f}" for figure in figures)
        )
    console = Console(highlight=False)
    console.print(table)
    for name, ratio in ratios.items():
        console.print(f"{name}: {ratio}")


if __name__ == "__main__":
    main()
