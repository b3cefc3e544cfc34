"""No command runs a file of the folder that it is given in."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from tests.system.work import RECIPE

TANDEM = str(Path(sys.executable).with_name("tandem"))
SHORT = ["train.max_steps=4", "evaluate.every_steps=4", "checkpoint.every_steps=4", "telemetry.report=true"]
# Each tells its name and fails, as would anything that needs the module whose place it takes.
STRANGER = "open({ran!r}, 'a').write({name!r} + '\\n')\nraise SystemExit('a stranger ran')\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module for every one that could be imported, and a run made there."""
    folder = tmp_path_factory.mktemp("hostile").resolve()
    libraries = {name for name in packages_distributions() if name.isidentifier()}
    for name in {*sys.stdlib_module_names, *libraries, "tandem", "usercustomize", "apport_python_hook"}:
        # As a package and as a module.
        (folder / name).mkdir()
        for file in (folder / f"{name}.py", folder / name / "__init__.py"):
            file.write_text(STRANGER.format(ran=str(folder / "ran"), name=name))
    (folder / "micro.yaml").write_text(RECIPE)
    tandem(folder, "train", "micro.yaml", *SHORT, "--run", "run", "--workers", "2", "--device", "cpu")
    return folder


def tandem(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [TANDEM, *words], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran(folder) == ""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name not in {"PYTHONSAFEPATH", "PYTHONPATH"}}
    return {**ours, "OMP_NUM_THREADS": "1"}


def ran(folder: Path) -> str:
    file = folder / "ran"
    return file.read_text() if file.exists() else ""


def test_training_with_workers_samplers_and_a_report_runs_no_stranger(hostile: Path) -> None:
    assert ran(hostile) == ""
    assert list((hostile / "run" / "log").glob("rank-00001.*"))
    assert list((hostile / "run" / "log").glob("samples-*.jsonl"))
    assert list((hostile / "run" / "report").glob("*.html"))


@pytest.mark.parametrize(
    "words",
    [
        ["data", "prepare", "micro.yaml", "data.folder=other", "--workers", "2"],
        ["report", "run"],
        ["runs", "list", "."],
        ["checkpoints", "run", "--verify"],
        ["watch", "run"],
        ["estimate", "micro.yaml"],
        ["resume", "run"],
        ["config", "show", "micro.yaml"],
        ["launch", "slurm", "micro.yaml", "--dry-run"],
        ["launch", "k8s", "micro.yaml", "--image", "i", "--claim", "c"],
        ["data", "inspect", "micro.yaml"],
        ["doctor"],
        ["average", "run", "averaged"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_runs_a_stranger(hostile: Path, words: list[str]) -> None:
    tandem(hostile, *words)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="a lab needs root on Linux")
def test_a_lab_runs_no_stranger(hostile: Path) -> None:
    try:
        tandem(hostile, "lab", "up", "--folder", "labs", "--hosts", "1")
        tandem(hostile, "lab", "exec", "--folder", "labs", "h1", "--", "true")
    finally:
        tandem(hostile, "lab", "down", "--folder", "labs")


LONG = """
from pathlib import Path
from tandem.observe.series import fold
if __name__ == "__main__":
    fold._PLAIN_BYTES = 0  # as if the run were long
    fold.read_series(Path("run"))
"""


def test_processes_that_read_a_long_log_run_no_stranger(hostile: Path, tmp_path: Path) -> None:
    # Started as the command is, by the path of a file: -P would reach the children by itself.
    (tmp_path / "program.py").write_text(LONG)
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(
        command, cwd=hostile, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran(hostile) == ""
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "ready"),
    [
        (["dashboard", ".", "--port", "0"], "Dashboard at"),
        (["serve", "run", "--port", "0", "--device", "cpu", "--engine", "torch"], "Translating at"),
    ],
    ids=["dashboard", "serve"],
)
def test_no_server_runs_a_stranger(hostile: Path, words: Sequence[str], ready: str) -> None:
    command = [TANDEM, *words]
    with subprocess.Popen(
        command, cwd=hostile, env=environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert any(line.startswith(ready) for line in process.stderr)
            process.send_signal(signal.SIGINT)
            process.wait(120)
        finally:
            process.kill()
    assert ran(hostile) == ""
