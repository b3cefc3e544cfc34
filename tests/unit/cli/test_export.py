"""`tandem export`: one command for every form, and what it says."""

from pathlib import Path

import pytest
from tests.unit.export.few import few_sentences
from tests.unit.translate.small_model import write_run, write_subword
from typer.testing import CliRunner

from tandem.cli.app import app
from tandem.errors import TandemError
from tandem.export import bundle, ctranslate2
from tandem.translate.exported import is_ctranslate2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_subword(folder / "subword")
    write_run(folder / "run", folder / "subword", bleu={10: 9.0, 20: 3.0})
    return folder / "run"


def export(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, words)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_the_best_checkpoint_of_a_run_goes_to_ctranslate2(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctranslate2, "sample_sentences", few_sentences)
    said = export(run, tmp_path / "model", "--quantization", "int8")
    assert "step-00000010 for CTranslate2 and tandem translate." in said
    assert "of 6 sentences are translated the same" in said
    assert is_ctranslate2(tmp_path / "model")


def test_a_bundle_needs_no_other_tool(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "sample_sentences", few_sentences)
    said = export(run, tmp_path / "bundle", "--to", "bundle")
    assert "for tandem translate." in said
    assert "6 of 6 sentences are translated the same" in said
    assert (tmp_path / "bundle/model.safetensors").is_file()


def test_quantization_is_refused_where_it_means_nothing(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="--quantization is for CTranslate2 alone"):
        export(run, tmp_path / "bundle", "--to", "bundle", "--quantization", "int8")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="is neither a checkpoint"):
        export(tmp_path, tmp_path / "model")


@pytest.mark.parametrize("form", ["bundle", "ctranslate2", "huggingface"])
def test_a_run_is_not_taken_for_a_strange_folder(form: str, run: Path) -> None:
    with pytest.raises(TandemError, match="is a run, which only training writes to: name another folder"):
        export(run, run, "--to", form)


@pytest.mark.parametrize("form", ["bundle", "ctranslate2", "huggingface"])
@pytest.mark.parametrize("name", ["step-00000020", "step-00000030"])
def test_nothing_is_written_among_the_checkpoints_of_a_run(form: str, name: str, run: Path) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(TandemError, match="to write to"):
        export(run, run / "checkpoints" / name, "--to", form)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
