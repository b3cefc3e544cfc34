"""`tandem checkpoints`: the table, the files, the JSON, and what is damaged."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tandem.artefact import building
from tandem.checkpoint.layout import KIND, VERSION, step_folder
from tandem.checkpoint.listing import Scores
from tandem.cli.checkpoints import checkpoints
from tandem.errors import TandemError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make(tmp_path, 1000, Scores(loss=2.34567, bleu=21.5))
    make(tmp_path, 2000, Scores(loss=2.1, bleu=20.0))
    make(tmp_path, 3000, Scores())
    return tmp_path


def make(run: Path, step: int, scores: Scores) -> None:
    target = step_folder(run / "checkpoints", step)
    with building(target, kind=KIND, version=VERSION, fingerprint="x") as build:
        (build.path / "model.safetensors").write_bytes(b"0" * 2_500_000)
        build.facts = {"scores": scores.to_json()}


def invoke(*arguments: str | Path) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(checkpoints)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, TandemError):
        raise result.exception
    return result.exit_code, result.stdout


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def test_the_table_shows_scores_sizes_and_marks(run: Path) -> None:
    code, text = invoke(run)
    table = rows(text)
    assert code == 0
    assert table[0] == ["step", "written", "size", "eval", "loss", "BLEU"]
    assert [row[:1] + row[3:] for row in table[2:5]] == [
        ["1,000", "2.5", "MB", "2.3457", "21.50", "best", "BLEU"],
        ["2,000", "2.5", "MB", "2.1000", "20.00", "best", "loss"],
        ["3,000", "2.5", "MB", "–", "–", "newest"],
    ]


def test_files_are_shown_with_their_sizes_when_asked(run: Path) -> None:
    assert "model.safetensors" not in invoke(run)[1]
    assert ["2.5", "MB", "model.safetensors"] in rows(invoke(run, "--files")[1])


def test_json_holds_everything(run: Path) -> None:
    shown = json.loads(invoke(run, "--json")[1])
    assert [each["step"] for each in shown] == [1000, 2000, 3000]
    assert shown[0]["loss"] == 2.34567
    assert shown[2]["bleu"] is None
    assert shown[2]["marks"] == ["newest"]
    assert shown[0]["files"]["model.safetensors"] == 2_500_000


def test_damage_is_found_by_verifying_and_fails_the_command(run: Path) -> None:
    path = step_folder(run / "checkpoints", 3000) / "model.safetensors"
    path.write_bytes(b"1" * 2_500_000)
    assert "damaged" not in invoke(run)[1]
    code, text = invoke(run, "--verify")
    assert code == 1
    assert "model.safetensors is damaged (its checksum differs)" in text
    assert ["3,000", "damaged"] in [[row[0], row[-1]] for row in rows(text)]
    assert ["2,000", "newest,", "best", "loss"] in [[row[0], *row[-3:]] for row in rows(text)]


def test_a_folder_that_is_no_run_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="has no folder checkpoints"):
        invoke(tmp_path)


def test_names_and_damage_steer_no_terminal(tmp_path: Path) -> None:
    run = tmp_path / "odd\x1b[2J"
    make(run, 1000, Scores())
    (step_folder(run / "checkpoints", 1000) / "model.safetensors").unlink()
    text = invoke(run, "--files")[1]
    assert "\x1b" not in text
    assert "odd\\x1b[2J/checkpoints/step-00001000/model.safetensors is missing" in text
