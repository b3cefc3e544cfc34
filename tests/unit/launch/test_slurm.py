import os
import shlex
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.launch.slurm import SlurmJob, submit, time_limit_s

JOB = SlurmJob(
    name="demo",
    run=Path("/data/runs/demo"),
    folder=Path("/home/a person"),
    command=["python", "-m", "tandem", "train", "my recipe.yaml", "a.b='$(reboot)'"],
    nodes=2,
    workers=4,
    restarts=3,
)


def options(script: str) -> dict[str, str]:
    lines = [line.removeprefix("#SBATCH --") for line in script.splitlines() if line.startswith("#SBATCH")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, for an sbatch."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / "sbatch"


def test_what_was_asked_for_stands_in_the_script_and_nothing_else() -> None:
    assert options(JOB.script()) == {
        "job-name": "demo",
        "nodes": "2",
        "ntasks-per-node": "4",
        "output": "/data/runs/demo/slurm-%j.txt",
        "open-mode": "append",
        "signal": "B:USR1@300",
        "requeue": "",
    }
    more = replace(JOB, time="24:00:00", partition="gpu", account="nmt", gpus_per_node=4, cpus_per_task=8)
    added = {
        "time": "24:00:00",
        "partition": "gpu",
        "account": "nmt",
        "gpus-per-node": "4",
        "cpus-per-task": "8",
    }
    assert options(more.script()) == options(JOB.script()) | added


def test_the_command_reaches_the_ranks_as_it_is_whatever_is_in_it() -> None:
    line = next(line for line in JOB.script().splitlines() if line.strip().startswith("srun "))
    assert shlex.split(line.strip().removesuffix(" &")) == [
        *("srun", "--kill-on-bad-exit=1", *JOB.command),
        *("--key-folder", f"{JOB.run}/keys"),
    ]


def test_the_script_is_one_that_bash_understands() -> None:
    subprocess.run(["bash", "-n"], input=JOB.script(), text=True, check=True)


class Queue:
    """Slurm's programs, of which srun does what a test says; each start and each requeueing is noted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, folder / "run"
        self.run.mkdir()
        self._program("scancel", f'kill "$(cat {folder}/pid)"')
        self._program("scontrol", f'echo "$@" >> {folder}/requeued')

    def _program(self, name: str, text: str) -> None:
        script = self.folder / name
        script.write_text(f"#!/bin/bash\n{text}\n")
        script.chmod(0o755)

    def start(self, step: str, *, restarts: int) -> "subprocess.Popen[str]":
        self._program("srun", f"echo x >> {self.folder}/starts\n{step}")
        job = replace(JOB, run=self.run, folder=self.folder, restarts=restarts)
        path = f"{self.folder}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "SLURM_JOB_ID": "17"}
        return subprocess.Popen(
            ["bash", "-c", job.script()], env=environment, stdout=subprocess.PIPE, text=True
        )

    def until(self, name: str) -> None:
        deadline_s = time.monotonic() + 30
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.01)

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_job_that_was_warned_is_put_back_whatever_its_ranks_end_with(queue: Queue, code: int) -> None:
    wait = f"trap 'kill $!; exit {code}' TERM; sleep 1000 & echo $$ > {queue.folder}/noted"
    wait += f"; mv {queue.folder}/noted {queue.folder}/pid; wait"
    with queue.start(wait, restarts=0) as script:
        queue.until("pid")
        script.send_signal(signal.SIGUSR1)
        script.communicate(timeout=30)
    assert queue.lines("requeued") == ["requeue 17"]
    assert len(queue.lines("starts")) == 1
    assert script.returncode == 0


@pytest.mark.parametrize("code", [0, 143])
def test_a_job_that_is_done_or_was_asked_to_stop_is_not_started_again(queue: Queue, code: int) -> None:
    with queue.start(f"exit {code}", restarts=3) as script:
        said, _ = script.communicate(timeout=30)
    assert (len(queue.lines("starts")), queue.lines("requeued"), said) == (1, [], "")


def test_lost_ranks_are_started_again_as_often_as_allowed_without_a_new_checkpoint(queue: Queue) -> None:
    with queue.start("exit 137", restarts=2) as script:
        said, _ = script.communicate(timeout=30)
    assert len(queue.lines("starts")) == 3
    assert said.count("Starting again: the ranks ended with exit code 137.") == 2
    assert script.returncode == 137


@pytest.mark.parametrize("text", ["a b", "x\n#SBATCH --uid=0", "-p", "a;b", "$(x)", "a'b", '"', "ü"])
def test_nothing_breaks_out_of_an_option_line(text: str) -> None:
    for job in (replace(JOB, partition=text), replace(JOB, account=text), replace(JOB, name=text)):
        with pytest.raises(TandemError, match="Slurm cannot be given"):
            job.script()
    with pytest.raises(TandemError, match="is no time limit"):
        replace(JOB, time=text).script()


@pytest.mark.parametrize("folder", ["/my runs/demo", "/runs/%u", "/runs/a\nb"])
def test_a_run_folder_that_slurm_would_read_otherwise_is_refused(folder: str) -> None:
    with pytest.raises(TandemError, match="for the run's folder"):
        replace(JOB, run=Path(folder)).script()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("24:00:00", 86400),
        ("2-12", 216000),
        ("1-00:30", 88200),
        ("1-00:00:05", 86405),
    ],
)
def test_time_limits_are_read_as_slurm_does(text: str, seconds: int) -> None:
    assert time_limit_s(text) == seconds


@pytest.mark.parametrize(("time", "notice"), [("5", 60), ("20", 120), ("24:00:00", 300)])
def test_a_short_job_is_not_warned_at_once(time: str, notice: int) -> None:
    assert options(replace(JOB, time=time).script())["signal"] == f"B:USR1@{notice}"


def test_a_job_is_submitted_from_the_script_in_its_run_folder(sbatch: Path, tmp_path: Path) -> None:
    sbatch.write_text('#!/bin/sh\n[ "$1" = --parsable ] && [ -s "$2" ] && echo "17;cluster"\n')
    sbatch.chmod(0o755)
    job = replace(JOB, run=tmp_path / "run")
    assert submit(job) == "17"
    assert job.script_file.read_text() == job.script()


def test_what_slurm_says_against_a_job_is_passed_on(sbatch: Path, tmp_path: Path) -> None:
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    with pytest.raises(TandemError, match=r"Slurm refuses the job \(sbatch: error: invalid partition\)"):
        submit(replace(JOB, run=tmp_path / "run"))


def test_without_slurm_there_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TandemError, match="There is no sbatch on this machine"):
        submit(replace(JOB, run=tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_link_in_the_place_of_the_script_is_replaced_and_not_followed(sbatch: Path, tmp_path: Path) -> None:
    sbatch.write_text("#!/bin/sh\necho 17\n")
    sbatch.chmod(0o755)
    job = replace(JOB, run=tmp_path / "run")
    job.run.mkdir()
    (tmp_path / "precious").write_text("mine")
    job.script_file.symlink_to(tmp_path / "precious")
    submit(job)
    assert (tmp_path / "precious").read_text() == "mine"
    assert not job.script_file.is_symlink()


def test_a_link_to_which_slurm_would_append_is_refused(sbatch: Path, tmp_path: Path) -> None:
    sbatch.write_text("#!/bin/sh\necho 17\n")
    sbatch.chmod(0o755)
    job = replace(JOB, run=tmp_path / "run")
    job.run.mkdir()
    (job.run / "slurm-17.txt").symlink_to(tmp_path / "precious")
    with pytest.raises(TandemError, match="is a link"):
        submit(job)
