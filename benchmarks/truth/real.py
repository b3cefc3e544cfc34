"""Real short runs on this machine, each with one thing done to it, so that the right answers are known."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faulting import Training, training
from benchmarks.killing import kill_while_training
from benchmarks.truth.labels import Label

from tandem.lab import Lab

__all__ = ["MICRO", "REAL", "WEAK", "Real", "train_real"]

MICRO = """
name: micro
data:
  train:
    - builtin: {pairs: 20000}
  valid:
    builtin: {pairs: 300, split: valid}
subword: {vocabulary: 1024, max_pieces: 64}
batch: {target_tokens: 2048, shares: even}
model: {preset: tiny, dropout: 0.0, norm: rms, activation: silu, gated: true, positions: rotary}
optim: {schedule: constant, learning_rate: 3.0e-3, warmup_steps: 50}
train: {max_steps: 240}
evaluate: {every_steps: 40, sentences: 100, probe_pairs: 300, beam: 1}
checkpoint: {every_steps: 80, keep_last: 3}
telemetry: {probe_steps: 40}
"""
WEAK = Path(__file__).parent / "weak"
"""A folder for PYTHONPATH: what makes ranks slow."""
_TANDEM = (sys.executable, "-m", "tandem")
_LOOK_S = 0.2
_PATIENCE_S = 400.0
_TURN_S = 0.03
_WORDS = tuple(a + b + c for a in "bdgklmnprt" for b in "ai" for c in "st")


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """A run that is trained here, and what is right to say of it."""

    name: str
    answers: Mapping[str, str]
    """Right verdicts by question; several with `or` between them."""
    words: Sequence[str] = ()
    """Changes to the recipe."""
    train: "Callable[[Real, Path], None]"
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> Mapping[str, Label]:
        """What is right, by question: a run of ours has the measured answers always."""
        measured = dict.fromkeys(
            (
                "duration",
                "schedule",
                "data",
                "checkpoint_files",
                "checkpoint_size",
                "step_time",
                "step_network",
            ),
            "measured",
        )
        return {
            key: Label(verdicts=frozenset(answer.split(" or ")))
            for key, answer in {**measured, **self.answers}.items()
        }


def train_real(case: Real, home: Path) -> Path:
    """Train, unless it was done before; returns the run folder."""
    folder = home / case.name
    run, is_done = folder / "runs" / case.name, folder / "done"
    if not is_done.exists():
        folder.mkdir(parents=True)
        (folder / "micro.yaml").write_text(MICRO)
        case.train(case, folder)
        is_done.touch()
    return run


def _alone(case: Real, folder: Path) -> None:
    """Two ranks on this machine."""
    with _started(case, folder) as process:
        _finish(process)


def _easy(case: Real, folder: Path) -> None:
    """Two ranks on word-for-word text with synonyms: what cannot be guessed is a floor that is reached soon."""
    dice = random.Random(1)  # noqa: S311  (nothing secret is drawn)
    for part, pairs in (("train", 20_000), ("valid", 300)):
        lines = [[dice.choice(_WORDS) for _ in range(dice.randint(3, 8))] for _ in range(pairs)]
        there = [" ".join(word[::-1] + dice.choice("eo") for word in line) for line in lines]
        (folder / f"{part}.en").write_text("".join(" ".join(line) + "\n" for line in lines))
        (folder / f"{part}.de").write_text("".join(line + "\n" for line in there))
    _alone(case, folder)


def _stopped(case: Real, folder: Path) -> None:
    """Two ranks, asked to stop at a step."""
    log = folder / "runs" / case.name / "log" / "rank-00000.jsonl"
    with _started(case, folder) as process:
        mark = f'"StepFinished","fields":{{"step":{case.options["at"]},'
        _await(lambda: log.exists() and mark in log.read_text(), process)
        process.send_signal(signal.SIGINT)
        process.wait(_PATIENCE_S)


def _killed(case: Real, folder: Path) -> None:
    """Two ranks, of which one is killed, and once more one."""
    kill_while_training(folder, f"runs/{case.name}", [*_two(), *case.words], kills=2, seed=1)
    lost = (folder / "runs" / case.name / "log" / "rank-00000.jsonl").read_text().count(
        '"TrainingStarted"'
    ) - 1
    if lost != 2:
        raise RuntimeError(f"{case.name} was started again {lost} times, not twice")


def _in_lab(case: Real, folder: Path) -> None:
    """Two hosts with a link of their own; the second one's rank may be held up."""
    with Lab.up(folder / "lab", hosts=2, rate=case.options["rate"]) as lab:
        words = [*case.words, "--device", "cpu"]
        with training(lab, folder, case.name, words) as now, ExitStack() as stack:
            if "straggler" in case.options:
                now.wait_for(lambda: now.last_step() >= 2, "the first steps")
                stack.enter_context(_held_up(now))
            if code := now.end():
                raise RuntimeError(f"{case.name} ended with {code}:\n{now.output.read_text()[-2000:]}")


@contextmanager
def _held_up(now: Training) -> Iterator[None]:
    """Let the second host's rank run for a third of the time only, whatever else the machine does."""
    (worker,) = now.workers_of(now.lab.hosts[1])
    is_over = threading.Event()

    def hold() -> None:
        with suppress(ProcessLookupError):
            while not is_over.is_set():
                os.kill(worker, signal.SIGSTOP)
                is_over.wait(2 * _TURN_S)
                os.kill(worker, signal.SIGCONT)
                is_over.wait(_TURN_S)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        yield
    finally:
        is_over.set()
        holder.join()
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)


@contextmanager
def _started(case: Real, folder: Path) -> "Iterator[subprocess.Popen[str]]":
    command = [*_TANDEM, "train", "micro.yaml", "--run", f"runs/{case.name}", "--plain", *_two(), *case.words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if "batch_s" in case.options:
        # Python runs sitecustomize from there in every process, which slows down the reader of the ranks.
        weak = folder / "weak.json"
        weak.write_text(json.dumps({"batch_s": float(case.options["batch_s"])}))
        environment |= {"PYTHONPATH": str(WEAK), "WEAK": str(weak)}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _two() -> list[str]:
    return ["--workers", "2", "--device", "cpu"]


def _finish(process: "subprocess.Popen[str]") -> None:
    _, complaint = process.communicate(timeout=_PATIENCE_S)
    if process.returncode:
        raise RuntimeError(complaint[-2000:])


def _await(is_so: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > end_s:
            raise RuntimeError("it never came so far")
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_S)
            raise RuntimeError("it ended too early")


_SMALL = ("data.train.0.builtin.pairs=500", "batch.target_tokens=1024")
_FALLING = {"trained": "no", "overfitting": "no"}

REAL: tuple[Real, ...] = (
    Real(
        name="real-compute-bound",
        train=_in_lab,
        options={"rate": "none"},
        words=("batch.target_tokens=4096", "train.max_steps=120", "evaluate.every_steps=20"),
        answers={**_FALLING, "network": "no"},
    ),
    Real(
        name="real-network-bound",
        train=_in_lab,
        options={"rate": "50mbit"},
        words=("train.max_steps=80", "evaluate.every_steps=20"),
        answers={**_FALLING, "network": "yes", "gpus": "no"},
    ),
    Real(
        name="real-straggler",
        train=_in_lab,
        options={"rate": "none", "straggler": ""},
        words=("batch.target_tokens=4096", "train.max_steps=100", "evaluate.every_steps=20"),
        answers={**_FALLING, "network": "no", "gpus": "no or partly"},
    ),
    Real(
        name="real-data-bound",
        train=_alone,
        options={"batch_s": "0.6"},
        words=("train.max_steps=100", "evaluate.every_steps=20"),
        answers={**_FALLING, "network": "no", "gpus": "no"},
    ),
    Real(
        name="real-overfitting",
        train=_alone,
        words=(*_SMALL, "train.max_steps=300", "evaluate.every_steps=25"),
        answers={"trained": "yes", "overfitting": "yes or partly", "network": "no"},
    ),
    Real(
        name="real-stopped-early",
        train=_stopped,
        options={"at": "150"},
        words=("train.max_steps=20000", "evaluate.every_steps=20"),
        answers={**_FALLING, "network": "no"},
    ),
    Real(
        name="real-converged",
        train=_easy,
        words=(
            "data.train=[{source: train.en, target: train.de}]",
            "data.valid={source: valid.en, target: valid.de}",
            "subword.vocabulary=400",
            "batch.target_tokens=1024",
            "model.width=64",
            "model.feed_forward=128",
            "optim.schedule=inverse_sqrt",
            "optim.learning_rate=2e-3",
            "train.max_steps=900",
            "evaluate.every_steps=30",
            "evaluate.sentences=0",
        ),
        answers={"trained": "yes", "overfitting": "no", "network": "no"},
    ),
    Real(
        name="real-diverged",
        train=_alone,
        words=("optim.learning_rate=0.9", "optim.clip_norm=0", "evaluate.every_steps=20"),
        answers={"trained": "no", "overfitting": "no or cannot tell"},
    ),
    Real(
        name="real-restarted-twice",
        train=_killed,
        words=("checkpoint.every_steps=40",),
        answers={**_FALLING, "network": "no"},
    ),
)
