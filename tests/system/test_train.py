"""`tandem train` and `tandem resume` as a user types them, with real workers: stopped, killed, and told bad things."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tandem.runlog.event import StopAsked, TrainingStarted, WorkersLost
from tandem.runlog.reader import read_records

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
batch: {{target_tokens: 512}}
model: {{preset: tiny, width: 32, heads: 2, encoder_layers: 1, decoder_layers: 1, feed_forward: 64}}
optim: {{warmup_steps: 10}}
train: {{max_steps: {STEPS}}}
evaluate: {{every_steps: 60, sentences: 8, probe_pairs: 50, beam: 1}}
telemetry: {{report: false}}
checkpoint: {{every_steps: {SAVED_EVERY}, keep_last: 20}}
"""
ENDLESS = "train.max_steps=1000000"

pytestmark = pytest.mark.xdist_group("train")


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("user").resolve())


@pytest.fixture(scope="module")
def undisturbed(folder: Folder) -> list[bytes]:
    """The weights of a run that nothing happened to."""
    result = folder.run("train", "micro.yaml", "--run", "whole", "--workers", "2")
    assert f"whole is at step {STEPS}" in result.stdout
    for place in (f"whole/checkpoints/step-{STEPS:08d}", "whole/log", "whole/tensorboard"):
        assert place in result.stdout
        assert (folder.path / place).exists()
    assert "tandem translate whole" in result.stdout
    assert "torch" not in result.stderr
    return folder.bits("whole")


def test_a_killed_worker_changes_no_bit(folder: Folder, undisturbed: list[bytes]) -> None:
    with folder.running("train", "micro.yaml", "--run", "killed", "--workers", "2") as process:
        wait_until(folder.saved("killed", 2 * SAVED_EVERY).exists, process)
        os.kill(folder.workers("killed")[1], signal.SIGKILL)
        printed, complaint = process.communicate()
    assert process.returncode == 0, complaint
    assert "killed by SIGKILL" in printed
    events = [record.event for record in read_records(folder.path / "killed")]
    assert [event.exit_code for event in events if isinstance(event, WorkersLost)] == [-signal.SIGKILL]
    starts = [event.step for event in events if isinstance(event, TrainingStarted)]
    assert starts[0] == 0
    assert starts[1] >= 2 * SAVED_EVERY
    assert folder.bits("killed") == undisturbed


def test_ctrl_c_saves_and_the_same_command_goes_on_exactly(folder: Folder, undisturbed: list[bytes]) -> None:
    words = ("train", "micro.yaml", "--run", "stopped", "--workers", "2")
    with folder.running(*words) as process:
        wait_until(folder.saved("stopped", SAVED_EVERY).exists, process)
        os.killpg(process.pid, signal.SIGINT)
        printed, complaint = process.communicate()
    assert process.returncode == 130, complaint
    assert not folder.workers("stopped")
    assert "Traceback" not in complaint
    assert printed.splitlines()[-1].endswith("tandem resume stopped")
    asked = [
        record for record in read_records(folder.path / "stopped") if isinstance(record.event, StopAsked)
    ]
    assert sorted(record.rank or 0 for record in asked) == [0, 1]
    assert "stopped goes on at step" in folder.run(*words).stdout
    assert folder.bits("stopped") == undisturbed


def test_sigterm_saves_too_and_only_one_process_trains_a_run(folder: Folder) -> None:
    words = ("train", "micro.yaml", "--run", "alone", ENDLESS)
    with folder.running(*words) as process:
        wait_until(folder.saved("alone", SAVED_EVERY).exists, process)
        refused = folder.run(*words, code=1).stderr
        assert f"alone is being made by process {process.pid}" in refused
        assert refused.count("\n") == 1
        process.terminate()
        process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not folder.workers("alone")
    last = max((folder.path / "alone" / "checkpoints").glob("step-*"))
    step = int(last.name.partition("-")[2])
    assert step > SAVED_EVERY
    assert "alone is at step" in folder.run("resume", "alone", f"train.max_steps={step + 1}").stdout
    assert folder.saved("alone", step + 1).exists()


def test_a_killed_parent_leaves_no_worker(folder: Folder) -> None:
    with folder.running("train", "micro.yaml", "--run", "orphaned", "--workers", "2", ENDLESS) as process:
        wait_until(folder.saved("orphaned", SAVED_EVERY).exists, process)
        workers = [os.pidfd_open(pid) for pid in folder.workers("orphaned")]
        process.kill()
    assert len(workers) == 2
    for worker in workers:
        # Readable when the worker has ended; it is not our child, so that it cannot be waited for otherwise.
        assert select.select([worker], [], [], 30.0)[0]
        os.close(worker)


def test_a_shard_that_was_cut_off_is_one_sentence(folder: Folder) -> None:
    data = folder.path / "cut"
    words = ("train", "micro.yaml", "--run", "torn", "--workers", "2", "data.folder=cut", ENDLESS)
    with folder.running(*words) as process:
        wait_until(folder.saved("torn", SAVED_EVERY).exists, process)
        shard = max((data / "train").glob("*.bin"))
        os.truncate(shard, shard.stat().st_size // 2)
        send(folder.workers("torn"), signal.SIGKILL)
        _, complaint = process.communicate()
    assert process.returncode == 1
    errors = [line for line in complaint.splitlines() if line.startswith("error: ")]
    assert errors == complaint.splitlines()[-1:]
    assert shard.name in errors[0]
    assert "Traceback" not in complaint


def test_a_run_goes_on_with_what_it_began_with(folder: Folder, undisturbed: list[bytes]) -> None:
    complaint = folder.run("train", "micro.yaml", "--run", "whole", "model.width=64", code=1).stderr
    assert "model.width" in complaint
    assert "--run" in complaint
    assert "tandem resume whole" in complaint
    assert "model.width" in folder.run("resume", "whole", "model.width=64", code=1).stderr
    assert "no run in nothing" in folder.run("resume", "nothing", code=1).stderr
    assert folder.bits("whole") == undisturbed


def test_a_damaged_newest_checkpoint_is_said_and_passed_over(
    folder: Folder, undisturbed: list[bytes]
) -> None:
    shutil.copytree(folder.path / "whole", folder.path / "damaged")
    file = folder.saved("damaged", STEPS) / "state.json"
    content = file.read_bytes()
    file.write_bytes(b"\xff\xff\xff" + content[3:])
    printed = folder.run("resume", "damaged").stdout
    assert "state.json is damaged" in printed
    assert f"damaged is at step {STEPS}" in printed
    assert folder.bits("damaged") == undisturbed
    assert (folder.path / "damaged" / "checkpoints" / f"step-{STEPS:08d}.rejected").is_dir()


def test_no_place_for_the_log_stops_nothing(folder: Folder) -> None:
    (folder.path / "mute").mkdir()
    (folder.path / "mute" / "log").write_text("a file where the log should be")
    printed = folder.run("train", "micro.yaml", "--run", "mute", "train.max_steps=20").stdout
    assert "mute is at step 20" in printed
    assert folder.saved("mute", 20).is_dir()


def test_data_is_not_changed_under_a_run(folder: Folder) -> None:
    with folder.running("train", "micro.yaml", "--run", "first", ENDLESS) as process:
        wait_until(folder.saved("first", SAVED_EVERY).exists, process)
        with folder.resting("first"):
            other = folder.run("train", "micro.yaml", "subword.vocabulary=640", "--run", "second", code=1)
        process.terminate()
        process.communicate()
    assert "is in use by process" in other.stderr
    assert not (folder.path / "second" / "checkpoints").exists()
