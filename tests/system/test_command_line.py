"""The real command line, as a user types it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tandem.runlog.event import BatchesPlanned, DataPrepared, RunFinished, StepFinished, TranslationScored
from tandem.runlog.reader import read_records

TANDEM = str(Path(sys.executable).with_name("tandem"))
RECIPE = """
name: mine
data:
  train:
    - builtin: {pairs: 1500}
  valid:
    builtin: {pairs: 50, split: valid}
subword: {vocabulary: 700, max_pieces: 64}
batch: {target_tokens: 512}
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user")
    (folder / "mine.yaml").write_text(RECIPE)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    def tandem(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "80", "PYTHONWARNINGS": "error"}
        result = subprocess.run(
            [TANDEM, *words], cwd=folder, capture_output=True, text=True, env=environment, check=False
        )
        assert result.returncode == code, result.stdout + result.stderr
        return result

    return tandem


@pytest.fixture(scope="module")
def prepared(run: Run, folder: Path) -> Path:
    printed = run("data", "prepare", "mine.yaml").stdout
    assert "tandem data inspect prepared/mine" in printed
    return folder / "prepared" / "mine"


def test_inspect_answers_how_big_the_training_set_is(run: Run, prepared: Path) -> None:
    by_folder = run("data", "inspect", str(prepared)).stdout
    assert "1,500" in by_folder
    assert max(map(len, by_folder.splitlines())) <= 80
    assert run("data", "inspect", "mine.yaml").stdout == by_folder


def test_inspect_writes_json_and_a_page(run: Run, prepared: Path, folder: Path) -> None:
    card = json.loads(run("data", "inspect", "mine.yaml", "--json", "--html", "card.html").stdout)
    assert card["raw"]["lines"] == 1_500
    assert card["stored"]["pairs"] + sum(reason["count"] for reason in card["dropped"]) == 1_500
    assert "plotly" in (folder / "card.html").read_text(encoding="utf-8")


def test_inspecting_what_is_not_prepared_says_what_to_do(run: Run) -> None:
    complaint = run("data", "inspect", "mine.yaml", "data.folder=elsewhere", code=1).stderr
    assert complaint.startswith("error: ")
    assert "prepare" in complaint


def test_a_folder_takes_no_overrides(run: Run, prepared: Path) -> None:
    assert "name the recipe instead" in run("data", "inspect", str(prepared), "seed=2", code=1).stderr


def test_what_the_system_refuses_is_one_sentence_too(run: Run, folder: Path) -> None:
    (folder / "a-file").write_text("")
    complaint = run("data", "prepare", "mine.yaml", "data.folder=a-file/below", code=1).stderr
    assert complaint.startswith("error: ")
    assert complaint.count("\n") == 1
    assert "a-file" in complaint


def test_a_wrong_key_names_the_right_one(run: Run) -> None:
    complaint = run("data", "prepare", "mine.yaml", "subword.vocabluary=800", code=1).stderr
    assert "subword.vocabulary" in complaint


def test_ctrl_c_stops_with_one_sentence_and_keeps_what_is_finished(folder: Path) -> None:
    words = [
        TANDEM,
        "data",
        "prepare",
        "mine.yaml",
        "data.folder=stopped",
        "data.train.0.builtin.pairs=2000000",
    ]
    with subprocess.Popen(
        words, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        # The folder appears when cleaning begins.
        while not (folder / "stopped" / "clean.partial").exists() and process.poll() is None:
            os.sched_yield()
        os.killpg(process.pid, signal.SIGINT)
        complaint = process.stderr.read()
    assert process.returncode == 130
    assert complaint.strip().splitlines()[-1].startswith("interrupted: ")
    assert "Traceback" not in complaint


def test_the_demo_trains_translates_and_says_where_everything_lies(run: Run, folder: Path) -> None:
    small = ["data.train.0.builtin.pairs=600", "data.valid.builtin.pairs=20", "data.test.0.builtin.pairs=20"]
    small += ["subword.vocabulary=512", "model.width=32", "model.feed_forward=64", "train.max_steps=4"]
    small += ["optim.warmup_steps=2", "evaluate.every_steps=2"]
    printed = run("demo", *small).stdout
    for expected in (
        "training starts",
        "2 ranks",
        "20 test sentences",
        "Done in",
        "tandem translate runs/demo",
    ):
        assert expected in printed
    home = folder / "runs" / "demo"
    assert (home / "data.html").is_file()
    assert (home / "checkpoints" / "step-00000004" / "model.safetensors").is_file()
    assert list((home / "tensorboard").iterdir())
    events = [record.event for record in read_records(home)]
    assert {DataPrepared, BatchesPlanned, StepFinished, TranslationScored} < {type(event) for event in events}
    assert isinstance(events[-1], RunFinished)
    shards = (home / "data" / "train" / "manifest.json").read_bytes()
    refused = run("demo", *small, "model.width=64", "subword.vocabulary=480", code=1)
    assert "runs/demo was begun with another recipe" in refused.stderr
    assert (home / "data" / "train" / "manifest.json").read_bytes() == shards
    elsewhere = ["--run", "elsewhere/run", f"data.folder={home / 'data'}", "--device", "abacus"]
    assert "abacus" in run("demo", *small, *elsewhere, code=1).stderr
    assert (folder / "elsewhere" / "run" / "data.html").is_file()
