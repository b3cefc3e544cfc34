"""A run whose workers are killed at random moments while it goes on."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["KINDS", "Kill", "kill_while_training", "train_alone", "weights", "write_recipe"]

Kind = Literal["step", "save", "start"]
"""Between two steps; while a checkpoint is written; at any moment from the start of the workers on."""

KINDS: tuple[Kind, ...] = ("step", "save", "start")

_TANDEM = (sys.executable, "-m", "tandem")
_LOOK_S = 0.05
_LOOK_CLOSELY_S = 0.002
_STEPS_S = 0.6
_START_S = 5.0
_RECIPE = """
name: micro
data:
  train:
    - builtin: {{pairs: 1500}}
  valid:
    builtin: {{pairs: 50, split: valid}}
subword: {{vocabulary: 704, max_pieces: 64}}
batch: {{target_tokens: 512, shares: even}}
model: {{preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64}}
optim: {{warmup_steps: 10}}
train: {{max_steps: {steps}}}
evaluate: {{every_steps: {evaluated}, sentences: 8, probe_pairs: 50, beam: 1}}
telemetry: {{report: false}}
checkpoint: {{every_steps: {saved}, keep_last: 3}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill, and what it struck."""

    kind: Kind
    rank: int
    left_half_written: bool
    """Whether a half-written checkpoint lay there right after it."""


def write_recipe(folder: Path, *, steps: int, saved: int = 5) -> None:
    """Write a recipe that two cores train on at dozens of steps a second, with a checkpoint every `saved` steps."""
    (folder / "micro.yaml").write_text(_RECIPE.format(steps=steps, evaluated=steps // 2, saved=saved))


def train_alone(folder: Path, run: str, how: Sequence[str]) -> None:
    """Train with nothing happening."""
    with _start(folder, run, how) as process:
        _finish(process)


def kill_while_training(folder: Path, run: str, how: Sequence[str], *, kills: int, seed: int) -> list[Kill]:
    """Train while `kills` workers are killed one after the other, if the run lasts so long."""
    dice = random.Random(seed)  # noqa: S311  (nothing secret is drawn)
    done: list[Kill] = []
    with _start(folder, run, how) as process:
        victims = _Victims(process, folder / run)
        while len(done) < kills:
            kill = victims.strike(KINDS[len(done) % len(KINDS)], dice)
            if kill is None:
                break
            done.append(kill)
        _finish(process)
    return done


def weights(folder: Path, run: str) -> dict[str, bytes]:
    """What a run has learnt: the tensors of its newest checkpoint, byte by byte."""
    newest = max((folder / run / "checkpoints").glob("step-????????"))
    return {f"{newest.name}/{path.name}": path.read_bytes() for path in sorted(newest.glob("*.safetensors"))}


def _start(folder: Path, run: str, how: Sequence[str]) -> subprocess.Popen[str]:
    command = [*_TANDEM, "train", "micro.yaml", "--run", run, "--plain", "--restarts", "1000", *how]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def _finish(process: subprocess.Popen[str]) -> None:
    _, complaint = process.communicate()
    if process.returncode:
        raise RuntimeError(complaint)


class _Victims:
    """The workers of a run."""

    def __init__(self, process: subprocess.Popen[str], run: Path) -> None:
        self._process, self._run = process, run
        self._killed: set[int] = set()
        self._starts = 0

    def strike(self, kind: Kind, dice: random.Random) -> Kill | None:
        """Kill one of the workers in the way of `kind`; None if the run ended first."""
        if not self._await(
            lambda: bool(self._workers()) and not self._killed & set(self._workers().values())
        ):
            return None
        if kind == "start":
            self._pass(dice.uniform(0, _START_S))
        elif not self._await(lambda: self._count_starts() > self._starts):
            return None
        if kind == "step":
            self._pass(dice.uniform(0, _STEPS_S))
        workers = self._workers()
        # Only rank 0 writes checkpoints.
        rank = 0 if kind == "save" else dice.choice(sorted(workers) or [0])
        if rank not in workers or (kind == "save" and not self._await_save(workers[rank])):
            return None
        self._starts, self._killed = self._count_starts(), set(workers.values())
        with suppress(ProcessLookupError):
            os.kill(workers[rank], signal.SIGKILL)
        return Kill(kind=kind, rank=rank, left_half_written=self._is_saving())

    def _await_save(self, worker: int) -> bool:
        return self._await(lambda: self._holds_while_saving(worker), _LOOK_CLOSELY_S)

    def _holds_while_saving(self, worker: int) -> bool:
        """Stop the worker in the midst of a checkpoint, if it is writing one."""
        if not self._is_saving():
            return False
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGSTOP)
        if self._is_saving():
            return True
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
        return False

    def _await(self, happened: Callable[[], bool], look_s: float = _LOOK_S) -> bool:
        """Whether it happened before the run ended."""
        while not happened():
            if self._pass(look_s):
                return False
        return True

    def _pass(self, seconds: float) -> bool:
        """Let time go by; whether the run ended meanwhile."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    def _is_saving(self) -> bool:
        return any((self._run / "checkpoints").glob("*.partial"))

    def _count_starts(self) -> int:
        log = self._run / "log" / "rank-00000.jsonl"
        return log.read_text().count('"event":"TrainingStarted"') if log.exists() else 0

    def _workers(self) -> dict[int, int]:
        """Process of each rank."""
        found: dict[int, int] = {}
        mark = f"TANDEM_PARENT={self._process.pid}"
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
                # What a rank starts has its environment too.
                if mark in words and b"tandem.cli.rank" in (folder / "cmdline").read_bytes():
                    rank = next(word for word in words if word.startswith("RANK="))
                    found[int(rank.partition("=")[2])] = int(folder.name)
        return found
