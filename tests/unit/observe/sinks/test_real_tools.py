"""The real libraries without any server: what they hold of a run that was forwarded in parts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.observe.sinks.told_twice import RECIPE, REDONE_LOSS, told
from tests.unit.observe.story import SAMPLES, Teller, step_event, write_log

SCRIPT = Path(__file__).with_name("real_tools.py")
CUT = 70
QUIET = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_TRACKING_URI": "http://127.0.0.1:9",
    "WANDB_ERROR_REPORTING": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
}


@pytest.fixture(scope="module", params=["wandb", "mlflow", "trackio"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a tool holds in the end."""
    folder = tmp_path_factory.mktemp(request.param)
    run, rest = folder / "story", folder / "rest"
    run.mkdir()
    (run / "recipe.yaml").write_bytes(RECIPE.read_bytes())
    records = list(told(Teller()))
    write_log(run, records[:CUT])
    write_log(rest, records[CUT:])
    done = subprocess.run(
        [sys.executable, str(SCRIPT), request.param, str(run), str(rest)],
        env=os.environ | QUIET | {"TRACKIO_DIR": str(folder / "trackio"), "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    held = json.loads((run / "found.json").read_text())
    assert isinstance(held, dict)
    return held | {"tool": request.param, "begun_s": records[0].time_ns / 1e9}


def steps(found: dict[str, Any], name: str) -> list[int]:
    return [point[0] for point in found["curves"][name]]


def test_every_point_is_there_once(found: dict[str, Any]) -> None:
    assert steps(found, "train_loss") == list(range(1, 61))
    assert steps(found, "BLEU") == [20, 40, 60]
    assert steps(found, "probe_loss") == [20, 40, 60]
    assert found["curves"]["system/alpha/gpu0/power_w"][0][1] == 250


def test_values_are_those_of_the_log_and_first_ones_stand(found: dict[str, Any]) -> None:
    losses = {step: value for step, value, *_ in found["curves"]["train_loss"]}
    assert losses[50] == pytest.approx(step_event(50).loss)
    assert losses[51] == REDONE_LOSS


def test_the_recipe_the_signature_and_the_answers_are_there(found: dict[str, Any]) -> None:
    assert found["config"] == "demo"
    assert found["facts"]["BLEU signature"] == "nrefs:1"
    assert len([name for name in found["facts"] if name[:2].isdigit()]) == 11


def test_translations_are_a_table(found: dict[str, Any]) -> None:
    assert found["tables"] == 3
    assert found["table"] == [list(row) for row in SAMPLES]


def test_times_are_those_of_the_run_where_the_tool_has_them(found: dict[str, Any]) -> None:
    elapsed = {step: value for step, value, *_ in found["curves"]["elapsed_s"]}
    assert elapsed[1] == pytest.approx(0.25, abs=0.01)
    if found["tool"] != "trackio":
        first = found["curves"]["train_loss"][0]
        assert first[2] == pytest.approx(found["begun_s"] + 0.25, abs=0.01)


def test_it_is_one_run_of_the_tool_and_nothing_of_this_process(found: dict[str, Any]) -> None:
    assert len(set(found["ids"])) == (3 if found["tool"] == "mlflow" else 1)
    assert set(found["files"]) <= {"events.txt", "recipe.yaml", *(f"step-{n:08d}.json" for n in (20, 40, 60))}
    if found["tool"] == "mlflow":
        assert found["ids"][1:] == ["FINISHED", "story"]
        assert found["refused"].startswith("MLflow does not take ")
        assert "127.0.0.1" in found["refused"]
