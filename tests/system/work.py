"""Where a user works, and what `tandem train` does there."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["ENDLESS", "SAVED_EVERY", "STEPS", "Folder", "send", "wait_until"]

TANDEM = str(Path(sys.executable).with_name("tandem"))
STEPS = 120
SAVED_EVERY = 20
RECIPE = f"""
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
train: {{max_steps: {STEPS}}}
evaluate: {{every_steps: 60, sentences: 8, probe_pairs: 50, beam: 1}}
telemetry: {{report: false}}
checkpoint: {{every_steps: {SAVED_EVERY}, keep_last: 20}}
"""
ENDLESS = "train.max_steps=1000000"


class Folder:
    """Where a user works."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "micro.yaml").write_text(RECIPE)

    def run(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [TANDEM, *words], cwd=self.path, capture_output=True, text=True, env=environment(), check=False
        )
        assert result.returncode == code, result.stdout + result.stderr
        return result

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Begin to train, as the leader of a process group as in a terminal."""
        with subprocess.Popen(
            [TANDEM, *words],
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def saved(self, run: str, step: int) -> Path:
        return self.path / run / "checkpoints" / f"step-{step:08d}"

    def all_saved(self, run: str) -> list[Path]:
        return sorted((self.path / run / "checkpoints").glob("step-????????"))

    def bits(self, run: str) -> list[bytes]:
        folder = self.saved(run, STEPS)
        return [(folder / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")]

    def workers(self, run: str) -> list[int]:
        """The processes that work on a run, the lowest rank first."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                here = (process / "cwd").resolve() == self.path
                if here and b"tandem.cli.rank" in words and run.encode() in words:
                    found.append(int(process.name))
        return sorted(found)

    @contextmanager
    def resting(self, run: str) -> Iterator[None]:
        """Have a run's workers stand still meanwhile: they would only take the processor away."""
        workers = self.workers(run)
        send(workers, signal.SIGSTOP)
        try:
            yield
        finally:
            send(workers, signal.SIGCONT)


def send(workers: Sequence[int], number: signal.Signals) -> None:
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker, number)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error", "COLUMNS": "100"}


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not happened():
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            raise AssertionError("".join(process.communicate()))
