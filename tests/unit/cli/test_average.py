"""`tandem average`: the mean of the last or best checkpoints of a run, as a folder that translates."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.unit.translate.small_model import write_run, write_subword
from typer.testing import CliRunner

from tandem.checkpoint.layout import step_folder
from tandem.cli.app import app
from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout
from tandem.translate.open import open_model


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_subword(folder / "subword")
    write_run(folder / "run", folder / "subword", bleu={10: 9.0, 20: 3.0, 30: 5.0})
    return folder / "run"


def average(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["average", *map(str, words)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.mark.parametrize(("by", "steps"), [("last", (20, 30)), ("bleu", (10, 30))])
def test_the_chosen_checkpoints_are_averaged(
    run: Path, tmp_path: Path, by: str, steps: tuple[int, int]
) -> None:
    said = average(run, tmp_path / "mean", "--count", "2", "--by", by)
    assert f"steps {steps[0]}, {steps[1]}" in said
    folders = (step_folder(RunLayout(run).checkpoints, step) for step in steps)
    first, second = (load_file(folder / "model.safetensors") for folder in folders)
    mean = load_file(tmp_path / "mean" / "model.safetensors")
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (first[name] + second[name]) / 2)


def test_the_mean_translates(run: Path, tmp_path: Path) -> None:
    average(run, tmp_path / "mean", "--count", "3")
    translator = open_model(tmp_path / "mean", engine="torch", device="cpu")
    assert len(translator.translate(["a dog"])) == 1


def test_as_many_as_there_are_are_taken_where_no_number_is_given(run: Path, tmp_path: Path) -> None:
    said = average(run, tmp_path / "mean")
    assert "the mean of 3 checkpoints, steps 10, 20, 30." in said
    assert (tmp_path / "mean/model.safetensors").is_file()


def test_at_most_five_are_taken_where_no_number_is_given(run: Path, tmp_path: Path) -> None:
    bleu = {step: float(step) for step in range(10, 80, 10)}
    write_run(tmp_path / "run", run.parent / "subword", bleu=bleu)
    said = average(tmp_path / "run", tmp_path / "mean")
    assert "the mean of 5 checkpoints, steps 30, 40, 50, 60, 70." in said


def test_the_mean_of_one_is_said_to_be_of_one(run: Path, tmp_path: Path) -> None:
    assert "the mean of 1 checkpoint, step 30." in average(run, tmp_path / "mean", "-n", "1")


def test_too_few_checkpoints_are_said(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="has 3 whole checkpoints to choose from, not 5"):
        average(run, tmp_path / "mean", "--count", "5")
    with pytest.raises(TandemError, match="has no whole checkpoint with a loss in .*: name a run that has"):
        average(run, tmp_path / "mean", "--by", "loss")
    with pytest.raises(TandemError, match="has no whole checkpoint in .*: name a run that has"):
        average(tmp_path, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_named_checkpoints_are_averaged_whatever_their_scores(run: Path, tmp_path: Path) -> None:
    folders = [step_folder(RunLayout(run).checkpoints, step) for step in (10, 20)]
    said = average(*folders, tmp_path / "mean")
    assert "step-00000010, " in said
    first, second = (load_file(folder / "model.safetensors") for folder in folders)
    mean = load_file(tmp_path / "mean" / "model.safetensors")
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (first[name] + second[name]) / 2)


def test_runs_and_checkpoints_are_not_mixed(run: Path, tmp_path: Path) -> None:
    folder = step_folder(RunLayout(run).checkpoints, 10)
    with pytest.raises(
        TandemError, match="is not a checkpoint: name one run alone, or the folders of checkpoints"
    ):
        average(run, folder, tmp_path / "mean")
    with pytest.raises(TandemError, match="--count and --by choose nothing"):
        average(folder, tmp_path / "mean", "--count", "2")
    with pytest.raises(TandemError, match="is named twice"):
        average(folder, folder, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_a_forgotten_target_costs_no_checkpoint(run: Path) -> None:
    folders = [step_folder(RunLayout(run).checkpoints, step) for step in (10, 20, 30)]
    before = {path: path.read_bytes() for path in folders[-1].iterdir()}
    with pytest.raises(TandemError, match="is not overwritten: name another folder"):
        average(*folders)
    assert {path: path.read_bytes() for path in folders[-1].iterdir()} == before
