"""Trains on Europarl English–German for so many seconds on one GPU, and says how good the model was when.

Everything goes through the command line: data prepare, train, translate. Hypotheses stay in the folder given by --out;
the result keeps their checksums.
"""

import argparse
import json
import lzma
import math
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tandem.checkpoint.listing import list_checkpoints
from tandem.config import load_recipe
from tandem.data.prepared import open_prepared
from tandem.runlog.event import StepFinished, TrainingStarted
from tandem.runlog.reader import read_records
from tandem.translate.score import score

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.corpus import TANDEM
from benchmarks.gpu.curve import Curve, Point, at_marks, first_below, read_curve
from benchmarks.machine import command_line, describe_machine, machine_slug
from benchmarks.program import BENCH

_RESULTS = Path(__file__).parent / "results"
_DATA = Path("../shared/data/europarl")
_PARTS = ("prepare", "train", "judge")
_TEST = "newstest2013"
_MARK_S = 60.0
_SPARE = 0.01
"""Share of the seconds that is not planned for: a run that is a little slower than its first steps ends in time."""
_TRIAL_STEPS, _TRIAL_WARMUP = 160, 60

_FAIRSEQ_CURVE = {60: 0.677, 120: 0.473, 180: 0.407, 240: 0.378, 300: 0.364, 360: 0.356, 420: 0.353}
"""Nats a character by seconds of training."""
_FAIRSEQ_BLEU = {"valid": 23.87, _TEST: 16.39}
_FAIRSEQ_SPEED = 297_000
_GOAL = 0.353

RECIPE: dict[str, Any] = {
    "name": "time-to-quality",
    "subword": {"kind": "bpe", "vocabulary": 16_000, "joint": True},
    "batch": {"target_tokens": 25_000},
    # Thirty epochs of 400,000 pairs: without this much dropout the model would learn them by heart.
    "model": {"preset": "base", "dropout": 0.2},
    "optim": {
        "schedule": "cosine",
        "learning_rate": 1.5e-3,
        "warmup_steps": 1000,
        # An average over the last 500 steps shows at any time what a lower learning rate would bring.
        "ema_decay": 0.998,
    },
    "train": {"label_smoothing": 0.1},
    # The loss alone while training: seconds, where translating takes minutes.
    "evaluate": {"sentences": 0, "probe_pairs": 0, "beam": 4},
    "checkpoint": {"every_minutes": None, "keep_last": 5, "keep_best": 1},
}
"""What is trained, but for the text and the number of steps."""

_DEFINITIONS = {
    "trained_s": "seconds on the wall since the first step began, evaluations left out, checkpoints counted; start-up "
    "is left out, and with it what the first step takes longer than the median step",
    "nats_per_character": "sum of the negative log-likelihood of the valid set, end marks included, without smoothing "
    "or dropout, over the characters of its reference: Unicode code points of the lines as the file has them, line "
    "ends left out",
    "marks": "the last evaluation at or before so many seconds",
    "steps_s": "seconds of the steps by the run's own clock, which leaves out what checkpoints block",
    "bleu": "sacreBLEU's, 13a, cased, of translations by `tandem translate` with the model that `judged` names",
    "fairseq": "fairseq 0.12.2 at the best of its settings on the same GPU and text, measured in the same way",
}


def main() -> None:
    """Do the parts that are asked for; the last one writes the result file and prints the table."""
    options = _read_options()
    run, recipe = options.home / "run", options.home / "recipe.yaml"
    if "prepare" in options.parts:
        options.home.mkdir(parents=True, exist_ok=True)
        recipe.write_text(json.dumps(RECIPE | {"data": _data(options)}, indent=1))
        _call("data", "prepare", recipe, *options.overrides)
    if "train" in options.parts:
        _train(recipe, run, options)
        curve, characters = read_curve(run), _count_characters(run)
        _print_curve(_marks(curve, characters), _seconds_to_goal(curve, characters))
    if "judge" in options.parts:
        result = _judge(run, options)
        path = _write_result(result, options)
        _print_curve(result["marks"], result["seconds_to_goal"]["trained_s"])
        _print_scores(result)
        print(f"written to {path}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=_DATA, help="folder of {train,valid}.{en,de}.xz")
    parser.add_argument("--test", type=Path, help=f"folder of {_TEST}.{{en,de}}.xz; --data, or beside it")
    parser.add_argument("--seconds", type=float, default=420.0, help="of training")
    parser.add_argument("--every", type=float, default=20.0, help="seconds of training between evaluations")
    parser.add_argument("--step-ms", type=float, help="time of a step, where it is known; else it is tried")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--average", type=int, default=0, help="judge the mean of so many last checkpoints")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS))
    parser.add_argument("--home", type=Path, default=BENCH / "time_to_quality", help="folder of data and run")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    parser.add_argument(
        "--hypotheses",
        type=Path,
        help="folder of the translations; --out, or the home where --out is not given",
    )
    parser.add_argument("overrides", nargs="*", help="values of the recipe to change")
    options = parser.parse_args()
    beside = options.data.parent / _TEST
    options.test = options.test or (beside if beside.is_dir() else options.data)
    options.hypotheses = options.hypotheses or (options.home if options.out == _RESULTS else options.out)
    return options


def _data(options: argparse.Namespace) -> dict[str, Any]:
    def files(folder: Path, name: str) -> dict[str, str]:
        found = {side: folder / f"{name}.{end}.xz" for side, end in (("source", "en"), ("target", "de"))}
        for path in found.values():
            if not path.is_file():
                raise SystemExit(f"{path} is missing; name a folder that holds it with --data or --test")
        return {side: str(path.resolve()) for side, path in found.items()}

    return {
        "train": [files(options.data, "train")],
        "valid": files(options.data, "valid"),
        "test": [{"name": _TEST, **files(options.test, _TEST)}],
        "folder": str((options.home / "prepared").resolve()),
    }


def _call(*words: object) -> str:
    """Run a tandem command with its display; returns it as it stands in a result."""
    command = [*TANDEM, *map(str, words)]
    subprocess.run(command, check=True)
    return _shown(command)


def _shown(command: Sequence[str]) -> str:
    return shlex.join([Path(word).name if word.startswith("/") else word for word in command])


def _train(recipe: Path, run: Path, options: argparse.Namespace) -> None:
    where = ["--workers", "1", "--device", options.device, "--plain"]
    step_s = options.step_ms / 1e3 if options.step_ms else _try_out(recipe, run, options, where)
    steps = math.floor(options.seconds * (1 - _SPARE) / step_s)
    every = math.ceil(steps / max(1, round(options.seconds / options.every)))
    print(f"{1e3 * step_s:.2f} ms a step: {steps:,} steps, evaluated every {every}", flush=True)
    values = [f"train.max_steps={steps}", f"evaluate.every_steps={every}"]
    shutil.rmtree(run, ignore_errors=True)
    command = _call("train", recipe, *options.overrides, *values, "--run", run, *where)
    (options.home / "command.txt").write_text(command)


def _try_out(recipe: Path, run: Path, options: argparse.Namespace, where: Sequence[str]) -> float:
    """Seconds of a step; the schedule ends with the last step, so that their number must be known beforehand."""
    trial = run.with_name("trial")
    shutil.rmtree(trial, ignore_errors=True)
    on_gpu = options.device == "cuda"
    steps, warmup = (_TRIAL_STEPS, _TRIAL_WARMUP) if on_gpu else (12, 4)
    values = [f"train.max_steps={steps}", "optim.warmup_steps=2", "evaluate.every_steps=null"]
    _call("train", recipe, *options.overrides, *values, "--run", trial, *where)
    events = [record.event for record in read_records(trial) if record.rank == 0]
    counted = [
        event.duration_s for event in events if isinstance(event, StepFinished) and event.step > warmup
    ]
    return statistics.mean(counted)


def _judge(run: Path, options: argparse.Namespace) -> dict[str, Any]:
    curve = read_curve(run)
    resolved = load_recipe(run / "recipe.yaml").recipe
    characters = _count_characters(run)
    started = next(record.event for record in read_records(run) if isinstance(record.event, TrainingStarted))
    model = _choose_model(run, options)
    return {
        "benchmark": "time_to_quality",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine({}),
        "device": started.device,
        "command": command_line(),
        "train_command": (options.home / "command.txt").read_text(),
        "definitions": _DEFINITIONS,
        "recipe": resolved.model_dump(mode="json", exclude={"data"}),
        "parameters": started.parameters,
        "precision": started.precision,
        "layout": started.layout,
        "schedule": started.schedule,
        "pairs": started.pairs,
        "reference_characters": characters,
        "reference_tokens": curve.points[-1].target_tokens,
        "speed": _speed(curve, started),
        "curve": [_describe(point, characters) for point in curve.points],
        "marks": _marks(curve, characters),
        "seconds_to_goal": {"nats_per_character": _GOAL, "trained_s": _seconds_to_goal(curve, characters)},
        "fairseq": {
            "nats_per_character": _FAIRSEQ_CURVE,
            "bleu": _FAIRSEQ_BLEU,
            "target_tokens_per_s": _FAIRSEQ_SPEED,
        },
        "judged": "mean of the last checkpoints" if options.average else "last checkpoint",
        "scores": {
            name: _score(model, folder / f"{file}.en.xz", folder / f"{file}.de.xz", name, options)
            for name, folder, file in (
                ("valid", options.data, "valid"),
                (_TEST, options.test, _TEST),
            )
        },
        "text_sha256": {
            path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(options.data.glob("*.xz"))
        },
    }


def _count_characters(run: Path) -> int:
    """Of the valid set's reference, line ends left out."""
    prepared = open_prepared(load_recipe(run / "recipe.yaml").recipe.prepared_folder)
    return sum(map(len, prepared.held_out_text("valid").target))


def _seconds_to_goal(curve: Curve, characters: int) -> float | None:
    goal = first_below(curve.points, nll=_GOAL * characters)
    return None if goal is None else round(goal.trained_s, 1)


def _choose_model(run: Path, options: argparse.Namespace) -> Path:
    if not options.average:
        return next(info for info in list_checkpoints(run / "checkpoints") if info.is_newest).folder
    target: Path = options.home / "average"
    shutil.rmtree(target, ignore_errors=True)
    _call("average", run, target, "--count", options.average)
    return target


def _speed(curve: Curve, started: TrainingStarted) -> dict[str, float]:
    epochs = curve.steps / started.updates_per_epoch
    return {
        "steps": curve.steps,
        "epochs": round(epochs, 2),
        "target_tokens": curve.target_tokens,
        "trained_s": round(curve.trained_s, 1),
        "steps_s": round(curve.steps_s, 1),
        "evaluated_s": round(curve.evaluated_s, 1),
        "start_up_s": round(curve.start_up_s, 1),
        "target_tokens_per_s": round(curve.target_tokens / curve.trained_s, 1),
    }


def _describe(point: Point, characters: int) -> dict[str, float]:
    return {
        "step": point.step,
        "trained_s": round(point.trained_s, 2),
        "nats_per_character": round(point.nll / characters, 5),
        "nats_per_token": round(point.nll / point.target_tokens, 5),
    }


def _marks(curve: Curve, characters: int) -> dict[str, dict[str, float]]:
    # The run stops a little early on purpose: its end counts for the mark that it was to reach.
    most = math.floor(curve.trained_s / (1 - 2 * _SPARE) / _MARK_S)
    found = at_marks(curve.points, [_MARK_S * number for number in range(1, most + 1)])
    return {f"{mark:g}": _describe(point, characters) for mark, point in found.items()}


def _score(
    model: Path, source: Path, target: Path, name: str, options: argparse.Namespace
) -> dict[str, object]:
    """Translate a set, keep what the model wrote, and score it."""
    begun = time.monotonic()
    command = [*TANDEM, "translate", str(model), "--device", options.device]
    text = lzma.decompress(source.read_bytes()).decode()
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True)
    options.hypotheses.mkdir(parents=True, exist_ok=True)
    (options.hypotheses / f"time-to-quality.{name}.de").write_text(done.stdout)
    references = lzma.decompress(target.read_bytes()).decode().split("\n")[:-1]
    scores = score(done.stdout.split("\n")[:-1], references)
    return {
        "sentences": scores.sentences,
        "bleu": round(scores.bleu, 2),
        "bleu_signature": scores.bleu_signature,
        "chrf": round(scores.chrf, 2),
        "chrf_signature": scores.chrf_signature,
        "hypotheses_sha256": sha256(done.stdout.encode()).hexdigest(),
        "command": _shown(command),
        "translated_s": round(time.monotonic() - begun, 1),
    }


def _write_result(result: Mapping[str, Any], options: argparse.Namespace) -> Path:
    name = f"{result['date']}-time-to-quality-{machine_slug(options.device)}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    path: Path = options.out / name
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    return beside.replace(path)


def _print_curve(marks: Mapping[str, Mapping[str, float]], goal: float | None) -> None:
    console = Console(highlight=False)
    table = Table("trained", "nats a character", "nats a token", "fairseq")
    for mark, point in marks.items():
        figures = f"{point['nats_per_character']:.4f}", f"{point['nats_per_token']:.4f}"
        table.add_row(f"{mark} s", *figures, str(_FAIRSEQ_CURVE.get(int(mark), "")))
    console.print(table)
    console.print(f"{_GOAL} nats a character after {goal} s of training", soft_wrap=True)


def _print_scores(result: Mapping[str, Any]) -> None:
    print(result["speed"])
    for name, held in result["scores"].items():
        print(f"{name}: {held['bleu']} BLEU, fairseq {_FAIRSEQ_BLEU[name]}; {held['bleu_signature']}")


if __name__ == "__main__":
    main()
