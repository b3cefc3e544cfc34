"""A program whose training is measured: what it is asked to do, and how fast its log says it was."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Stages
from benchmarks.program import Program

__all__ = [
    "LONGEST",
    "UPDATE_TOKENS",
    "Speed",
    "TrainJob",
    "Trainer",
    "average_speed",
    "last_log",
    "module_command",
    "no_speed",
    "threaded",
]

UPDATE_TOKENS = 4096
"""Target tokens of an update, without padding; the others' batches are set so that they come near it."""

LONGEST = 256
"""Most pieces of a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJob:
    """Train for `warmup` steps that do not count and as many again that do, in the folder `out`."""

    out: Path
    threads: int
    warmup: int

    @property
    def steps(self) -> int:
        """Return how many steps there are in all."""
        return 2 * self.warmup


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What the steps that count did: target tokens, without padding, of a second and of an update."""

    target_tokens_per_s: float
    target_tokens_per_update: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer(Program):
    """A program that trains, the commands by which it does a job, and how fast its log says it was."""

    stages: Callable[[TrainJob], Stages]
    speed: Callable[[TrainJob], Speed]


def average_speed(*, tokens: float, seconds: float, steps: int) -> Speed:
    """Return the speed of `steps` steps that took `seconds` for `tokens`."""
    return Speed(target_tokens_per_s=tokens / seconds, target_tokens_per_update=tokens / steps)


def last_log(job: TrainJob) -> str:
    """Return what the last stage of a job printed."""
    return max(job.out.glob("log-*-0")).read_text(errors="replace")


def no_speed(program: Program, job: TrainJob) -> SystemExit:
    """Return the error for a log without the figures that it should have."""
    return SystemExit(f"{program.name} printed no speed for step {job.steps}:\n{last_log(job)[-2000:]}")


def module_command(program: Program, module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of an installed toolkit."""
    return [str(program.home / "bin" / "python"), "-W", "ignore", "-m", module, *arguments]


def threaded(threads: int, command: list[str]) -> list[str]:
    """Return `command` with so many threads to compute in, and nothing held back of what it prints."""
    return ["env", f"OMP_NUM_THREADS={threads}", "PYTHONUNBUFFERED=1", *command]
