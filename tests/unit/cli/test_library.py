"""`from tandem import load_translator`: light until it is used."""

import shutil
from pathlib import Path

import pytest
from tests.unit.translate.small_model import SENTENCES, write_run, write_subword

import tandem
from tandem.cli.library import cache_folder, load_translator, state_folder
from tandem.errors import TandemError
from tandem.progress import Silent


class Sayings(Silent):
    """Progress that remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_subword(folder / "subword")
    write_run(folder / "run", folder / "subword", bleu={10: 3.0})
    return folder / "run"


def test_three_lines_translate(run: Path) -> None:
    from tandem import load_translator

    translator = load_translator(str(run), engine="torch", device="cpu")
    assert translator.translate([SENTENCES[0]])[0].text


def test_it_is_one_of_the_packages_names_and_others_are_not() -> None:
    assert tandem.load_translator is load_translator
    assert "load_translator" in tandem.__all__
    with pytest.raises(AttributeError, match="no attribute 'load_model'"):
        tandem.load_model  # type: ignore[attr-defined]  # noqa: B018


def test_a_conversion_that_fails_leaves_torch_unless_ctranslate2_was_asked_for(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Path:
        raise TandemError("It cannot be converted.")

    pytest.importorskip("ctranslate2")
    monkeypatch.setattr("tandem.export.cached.cached_conversion", fail)
    told = Sayings()
    assert load_translator(run, device="cpu", progress=told).engine.name == "torch"
    assert told.said == [
        "CTranslate2 cannot be used, and the model is searched with torch instead: It cannot be converted."
    ]
    with pytest.raises(TandemError, match="cannot be converted"):
        load_translator(run, device="cpu", engine="ctranslate2")


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors"])
def test_what_is_damaged_is_said_once(
    name: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    copy = tmp_path / "copy"
    shutil.copytree(run / "checkpoints/step-00000010", copy)
    (copy / name).write_bytes(b"x" * (copy / name).stat().st_size)
    told = Sayings()
    with pytest.raises(TandemError, match=f"{name} is damaged"):
        load_translator(copy, device="cpu", progress=told)
    assert told.said == []


def test_folders_of_the_user_follow_xdg_where_it_names_absolute_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == tmp_path / "tandem"
    assert state_folder() == Path("/home/someone/.local/state/tandem")
