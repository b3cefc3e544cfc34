"""A folder for CTranslate2 translates as the checkpoint does, or is not there."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.export.few import FEW
from tests.unit.translate.small_model import SENTENCES
from torch import Tensor

from tandem.config import ModelSection
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.export import ctranslate2
from tandem.export.ctranslate2 import Quantization, export_ctranslate2
from tandem.export.specification import build_specification
from tandem.export.verify import UnlikeError
from tandem.translate.exported import is_ctranslate2, open_ctranslate2
from tandem.translate.open import open_model


@pytest.fixture(scope="module")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "model"
    export_ctranslate2(checkpoint, folder)
    return folder


def copied(exported: Path, target: Path) -> Path:
    target.mkdir()
    for path in exported.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


@pytest.mark.parametrize("quantization", ["float16", "bfloat16", "int8"])
def test_rounded_weights_take_less_room_and_are_verified(
    checkpoint: Path, exported: Path, tmp_path: Path, quantization: Quantization
) -> None:
    verified = export_ctranslate2(checkpoint, tmp_path / "model", quantization=quantization)
    assert verified.sentences == FEW
    assert verified.likeness > 80
    assert (tmp_path / "model/model.bin").stat().st_size < (exported / "model.bin").stat().st_size
    assert len(open_model(tmp_path / "model", device="cpu").translate(["a dog"])) == 1


def test_text_goes_in_and_the_same_text_comes_out(checkpoint: Path, exported: Path) -> None:
    lines = ["", SENTENCES[0], "é  ☃ unseen"]
    own = open_model(checkpoint, engine="torch", device="cpu")
    other = open_model(exported, device="cpu")
    assert other.engine.name == "ctranslate2"
    assert other.wish == own.wish
    for one, two in zip(own.translate(lines), other.translate(lines), strict=True):
        assert one.text == two.text
        assert one.score == pytest.approx(two.score, abs=1e-4)


def test_the_folder_says_what_it_is(checkpoint: Path, exported: Path, tmp_path: Path) -> None:
    facts = json.loads((exported / "manifest.json").read_bytes())["tandem"]["facts"]
    assert facts["quantization"] == "float32"
    assert facts["languages"] == ["en", "de"]
    assert facts["verified"]["differing"] == 0
    assert is_ctranslate2(exported)
    assert not is_ctranslate2(checkpoint)
    assert not is_ctranslate2(tmp_path)


@pytest.mark.parametrize("name", ["model.bin", "config.json", "recipe.yaml", "subword.model"])
def test_a_missing_file_is_named(exported: Path, tmp_path: Path, name: str) -> None:
    folder = copied(exported, tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(TandemError, match=rf"model/{name} is missing: make the folder again"):
        open_ctranslate2(folder)


@pytest.mark.parametrize("name", ["model.bin", "shared_vocabulary.json", "subword.model"])
def test_a_changed_byte_is_found(exported: Path, tmp_path: Path, name: str) -> None:
    folder = copied(exported, tmp_path / "model")
    raw = bytearray((folder / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    (folder / name).write_bytes(raw)
    with pytest.raises(TandemError, match=rf"model/{name} is damaged .*: export the model again"):
        open_ctranslate2(folder)


def test_a_note_in_the_folder_does_no_harm(exported: Path, tmp_path: Path) -> None:
    folder = copied(exported, tmp_path / "model")
    (folder / "README.md").write_text("for the phone")
    assert open_ctranslate2(folder, threads=1).recipe.name == "small"


def test_an_export_that_computes_otherwise_leaves_nothing(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(section: ModelSection, weights: Mapping[str, Tensor], subword: Subword) -> Any:
        name = "decoder.1.feed_forward.output.weight"
        return build_specification(section, {**weights, name: weights[name] * 1.1}, subword)

    monkeypatch.setattr(ctranslate2, "build_specification", wrong)
    with pytest.raises(UnlikeError, match="was not kept"):
        export_ctranslate2(checkpoint, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_export_leaves_nothing(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ctranslate2, "verify_export", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_ctranslate2(checkpoint, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_export_leaves_the_one_before(
    checkpoint: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(exported, tmp_path / "model")
    monkeypatch.setattr(ctranslate2, "verify_export", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_ctranslate2(checkpoint, folder, quantization="int8")
    open_ctranslate2(folder)
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_of_someone_else_is_not_replaced(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/mine.txt").write_text("dear")
    with pytest.raises(TandemError, match="was not made by Tandem"):
        export_ctranslate2(checkpoint, tmp_path / "letters")
    assert (tmp_path / "letters/mine.txt").read_text() == "dear"
