"""Measures data preparation: Tandem's, spm_encode's and other toolkits', on the same text in one run."""

import argparse
import json
import lzma
import os
import shlex
import shutil
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import sentencepiece
from rich.console import Console
from rich.table import Table

from tandem.cli.bars import Bars
from tandem.progress import Progress

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import describe_machine, machine_slug
from benchmarks.measure import Stages, Took, all_cores, peak_memory_bytes, time_stages
from benchmarks.program import BENCH, install
from benchmarks.yardsticks import FLOOR, SIDES, TANDEM, TOOLKITS, Job, Side

_RESULTS = Path(__file__).parent / "results"
_TEXT = BENCH / "text"
_RUN = BENCH / "run"
_VOCABULARY = 32_768
_MODEL_LINES = 100_000
_FEWEST_PAIRS = 10_000
_BUSY = 0.5
_LANGUAGES = ("en", "de")

_DEFINITIONS = {
    "wall_s": "seconds from the start of the first command to the end of the last, one figure a repetition",
    "cpu_s": "user and system seconds of all processes of that repetition",
    "pairs_per_s": "pairs read (times copies, for the floor on several cores) / median wall_s",
    "peak_memory_bytes": "highest sum of proportional set sizes (PSS, from /proc) over all processes, sampled "
    "every 20 ms in a first run that is not timed",
    "cores": "the processes are held to that many cores; programs that take a number of workers get the same",
    "ratios": "speed: pairs_per_s of Tandem over the other's at the same number of cores, all pairs; "
    "memory: Tandem's peak with all pairs over its peak with a tenth of them",
}


@dataclass(slots=True, kw_only=True)
class Case:
    """One program on one amount of text with one number of cores, and what was measured of it."""

    side: Side
    pairs: int
    cores: int
    command: str = ""
    peak_memory_bytes: int = 0
    took: list[Took] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return what it is called while it runs."""
        return f"{self.side.name}, {self.pairs:,} pairs on {_cores(self.cores)}"

    @property
    def latest(self) -> str:
        """Return what its latest run found."""
        return f"{self.took[-1].wall_s:.2f} s" if self.took else f"{self.peak_memory_bytes / 1e6:,.0f} MB"

    @property
    def wall_s(self) -> float:
        """Return the median over the repetitions."""
        return statistics.median(took.wall_s for took in self.took)

    @property
    def pairs_per_s(self) -> float:
        """Return the pairs done in a second of the median repetition."""
        return self.pairs * (self.cores if self.side.copies else 1) / self.wall_s

    def to_json(self) -> dict[str, object]:
        """Return the case as it stands in a result file."""
        return {
            "side": self.side.name,
            "pairs": self.pairs,
            "cores": self.cores,
            "command": self.command,
            "wall_s": [round(took.wall_s, 3) for took in self.took],
            "cpu_s": [round(took.cpu_s, 3) for took in self.took],
            "pairs_per_s": round(self.pairs_per_s, 1),
            "peak_memory_bytes": self.peak_memory_bytes,
        }


def main() -> None:
    """Install what is missing, measure, write the result file and print the table."""
    options = _options()
    for side in SIDES:
        install(side)
    if options.install:
        return
    if (load := os.getloadavg()[0]) > _BUSY:
        print(f"this machine is busy (load {load:.1f}): figures will be too low", flush=True)
    machine = describe_machine({side.name: side.version for side in TOOLKITS})
    sizes = (options.pairs // 10, options.pairs)
    shutil.rmtree(_TEXT, ignore_errors=True)
    _TEXT.mkdir(parents=True)
    with Bars() as progress:
        for pairs in sizes:
            _write_text(options.data, pairs, progress)
        _train_model(options.pairs, progress)
        cases = _measure(sizes, options.repetitions, progress)
    ratios = _ratios(cases, sizes)
    result = {
        "benchmark": "prepare",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "text": _describe_text(sizes),
        "definitions": _DEFINITIONS,
        "sides": {side.name: {"version": side.version, "does": side.does} for side in SIDES},
        "cases": [case.to_json() for case in cases],
        "ratios": ratios,
    }
    path = _write_result(result)
    _print_table(cases, ratios)
    print(f"written to {os.path.relpath(path)}")


def _cores(number: int) -> str:
    return f"{number} core" + "s" * (number > 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data/europarl"), help="folder of train.{en,de}.xz"
    )
    parser.add_argument(
        "--pairs", type=int, default=400_000, help="pairs to prepare; a tenth of them as well"
    )
    parser.add_argument("--repetitions", type=int, default=3, help="timed runs of each case")
    parser.add_argument(
        "--install", action="store_true", help="install the programs to compare with, and stop"
    )
    options = parser.parse_args()
    if options.pairs < _FEWEST_PAIRS or options.repetitions < 1:
        parser.error(f"--pairs must be at least {_FEWEST_PAIRS}, --repetitions at least 1")
    return options


def _text(pairs: int, language: str) -> Path:
    return _TEXT / f"{pairs}.{language}"


def _describe_text(sizes: tuple[int, ...]) -> dict[str, object]:
    return {
        "pairs": sizes,
        "bytes": [sum(_text(pairs, language).stat().st_size for language in _LANGUAGES) for pairs in sizes],
        "subword": f"SentencePiece BPE, {_VOCABULARY} pieces, byte fallback, trained outside the timed runs",
    }


def _write_text(data: Path, pairs: int, progress: Progress) -> None:
    """Unpack the first `pairs` lines of both sides, since spm_encode reads plain text only."""
    with progress.bar(f"unpacking {pairs:,} pairs", total=2 * pairs, unit="lines") as bar:
        for language in _LANGUAGES:
            packed = data / f"train.{language}.xz"
            if not packed.is_file():
                raise SystemExit(f"{packed} is missing; name a folder that holds it with --data")
            with lzma.open(packed) as lines, _text(pairs, language).open("wb") as text:
                written = 0
                for line in islice(lines, pairs):
                    text.write(line)
                    written += 1
            if written < pairs:
                raise SystemExit(f"{packed} has only {written} lines; ask for fewer with --pairs")
            bar.advance(pairs)


def _train_model(pairs: int, progress: Progress) -> None:
    with progress.bar("training the subword model"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_model_lines(pairs),
            model_prefix=str(_TEXT / "spm"),
            vocab_size=_VOCABULARY,
            model_type="bpe",
            byte_fallback=True,
            hard_vocab_limit=False,
            pad_id=3,
            minloglevel=1,
        )


def _model_lines(pairs: int) -> Iterator[str]:
    for language in _LANGUAGES:
        with _text(pairs, language).open(encoding="utf-8", newline="\n") as text:
            yield from islice(text, _MODEL_LINES)


def _measure(sizes: tuple[int, ...], repetitions: int, progress: Progress) -> list[Case]:
    """Run every case once for its memory, then in turn, again and again, for its time."""
    cores = sorted({1, all_cores()})
    cases = [Case(side=side, pairs=pairs, cores=each) for pairs in sizes for each in cores for side in SIDES]
    with progress.bar("measuring", total=len(cases) * (1 + repetitions), unit="runs") as bar:
        for repetition in range(1 + repetitions):
            for case in cases:
                _run(case, timed=repetition > 0)
                bar.advance(1)
                progress.say(f"{case.name}: {case.latest}")
    return cases


def _run(case: Case, *, timed: bool) -> None:
    shutil.rmtree(_RUN, ignore_errors=True)
    _RUN.mkdir(parents=True)
    source, target = (f"../text/{_text(case.pairs, language).name}" for language in _LANGUAGES)
    job = Job(source=source, target=target, model="../text/spm.model", out=_RUN, cores=case.cores)
    stages = case.side.stages(job)
    case.command = _shown(stages)
    if timed:
        case.took.append(time_stages(stages, cores=case.cores, folder=_RUN))
    else:
        case.peak_memory_bytes = peak_memory_bytes(stages, cores=case.cores, folder=_RUN)
    shutil.rmtree(_RUN)


def _shown(stages: Stages) -> str:
    """Return the commands as a shell would take them, programs without their folders."""
    named = [[shlex.join([Path(command[0]).name, *command[1:]]) for command in stage] for stage in stages]
    return "; ".join(" & ".join(stage) for stage in named)


def _ratios(cases: list[Case], sizes: tuple[int, ...]) -> dict[str, float]:
    small, large = sizes
    found = {(case.side.name, case.pairs, case.cores): case for case in cases}
    ratios = {}
    for cores in sorted({case.cores for case in cases}):
        tandem = found[TANDEM.name, large, cores]
        for side in (FLOOR, *TOOLKITS):
            ratio = tandem.pairs_per_s / found[side.name, large, cores].pairs_per_s
            ratios[f"speed over {side.name} on {_cores(cores)}"] = round(ratio, 2)
        grown = tandem.peak_memory_bytes / found[TANDEM.name, small, cores].peak_memory_bytes
        ratios[f"memory at {large} over {small} pairs on {_cores(cores)}"] = round(grown, 2)
    return ratios


def _write_result(result: Mapping[str, object]) -> Path:
    _RESULTS.mkdir(exist_ok=True)
    path = _RESULTS / f"{result['date']}-prepare-{machine_slug()}.json"
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_table(cases: list[Case], ratios: dict[str, float]) -> None:
    table = Table("program", "cores", "pairs", "seconds", "pairs/s", "peak MB")
    for column in table.columns[1:]:
        column.justify = "right"
    for case in cases:
        name = f"{case.side.name} {case.side.version}"
        amounts = f"{case.wall_s:.2f}", f"{case.pairs_per_s:,.0f}", f"{case.peak_memory_bytes / 1e6:,.0f}"
        table.add_row(name, str(case.cores), f"{case.pairs:,}", *amounts)
    console = Console(highlight=False)
    console.print(table)
    for name, ratio in ratios.items():
        console.print(f"{name}: {ratio}")


if __name__ == "__main__":
    main()
