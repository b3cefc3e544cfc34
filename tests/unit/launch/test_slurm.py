import shlex
import subprocess
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
    assert shlex.split(line.strip().removesuffix(" &")) == ["srun", "--kill-on-bad-exit=1", *JOB.command]


def test_the_script_is_one_that_bash_understands() -> None:
    subprocess.run(["bash", "-n"], input=JOB.script(), text=True, check=True)


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
