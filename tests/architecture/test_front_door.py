"""The front door is light: help, configuration and readers load nothing heavy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "numpy", "sentencepiece", "plotly", "mtdata", "zstandard"}


def modules_loaded_by(statement: str) -> set[str]:
    attempt = f"try:\n    {statement}\nexcept SystemExit:\n    pass\n"
    program = f"import sys, json\n{attempt}print(json.dumps(sorted(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=REPOSITORY
    ).stdout
    return {name.partition(".")[0] for name in json.loads(printed.splitlines()[-1])}


@pytest.mark.parametrize(
    "module",
    [
        "tandem",
        "tandem.artefact",
        "tandem.config",
        "tandem.runlog",
        "tandem.estimate.memory",
        "tandem.cli.app",
    ],
)
def test_importing_the_front_door_loads_nothing_heavy(module: str) -> None:
    assert not HEAVY & modules_loaded_by(f"import {module}")


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "data --help",
        "data prepare --help",
        "config --help",
        "estimate recipes/demo.yaml",
    ],
)
def test_help_and_arithmetic_load_nothing_heavy(words: str) -> None:
    statement = f"sys.argv = ['tandem', *{words.split()!r}]; from tandem.cli.app import main; main()"
    assert not HEAVY & modules_loaded_by(statement)


@pytest.mark.parametrize(
    "module",
    ["tandem.data.prepare", "tandem.data.batches.plan", "tandem.observe.data_card", "tandem.launch.crew"],
)
def test_preparing_planning_reading_and_leading_hosts_load_no_torch(module: str) -> None:
    assert "torch" not in modules_loaded_by(f"import {module}")


def test_a_model_and_its_first_gradient_load_no_algebra() -> None:
    """Which every rank would wait half a second for."""
    statement = (
        "import torch; from tests.learning import build_learner, train; "
        "from tandem.parallel.world import SoloWorld; "
        "world = SoloWorld(device=torch.device('cpu')); train(build_learner(world), world, range(1, 2))"
    )
    assert "sympy" not in modules_loaded_by(statement)
