"""`from tandem import load_translator`: light until it is used."""

from pathlib import Path

import pytest
from tests.unit.translate.small_model import SENTENCES, write_run, write_subword

import tandem
from tandem.cli.library import cache_folder, load_translator, state_folder
from tandem.errors import TandemError


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
    assert load_translator(run, device="cpu").engine.name == "torch"
    with pytest.raises(TandemError, match="cannot be converted"):
        load_translator(run, device="cpu", engine="ctranslate2")


def test_folders_of_the_user_follow_xdg_where_it_names_absolute_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == tmp_path / "tandem"
    assert state_folder() == Path("/home/someone/.local/state/tandem")
