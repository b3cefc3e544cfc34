import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.translate.small_model import SENTENCES, build_small, build_translator, write_run

from tandem.checkpoint.bundle import open_bundle
from tandem.checkpoint.layout import step_folder
from tandem.config import Recipe
from tandem.data.corpus.clean import Cleaner
from tandem.data.corpus.tally import Tally
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout
from tandem.translate import open as open_module
from tandem.translate.open import build_mend, find_device, open_model
from tandem.translate.penalty import LengthPenalty
from tandem.translate.translator import Translator
from tandem.translate.wish import Wish


@pytest.fixture
def checkpoint(tmp_path: Path, subword_folder: Path) -> Path:
    write_run(tmp_path / "run", subword_folder, bleu={7: 12.0})
    return step_folder(RunLayout(tmp_path / "run").checkpoints, 7)


def opened(path: Path) -> Translator:
    return open_model(path, engine="torch", device="cpu")


def test_a_checkpoint_and_its_run_translate_as_the_model_that_was_saved(
    checkpoint: Path, tmp_path: Path, subword: Subword
) -> None:
    saved = build_translator(build_small(subword, seed=7), subword, wish=Wish(beam=2))
    expected = saved.translate(SENTENCES[:5])
    assert opened(checkpoint).translate(SENTENCES[:5]) == expected
    assert opened(tmp_path / "run").translate(SENTENCES[:5]) == expected


def test_the_recipe_says_how_to_search_and_the_languages(checkpoint: Path) -> None:
    translator = opened(checkpoint)
    assert translator.wish == Wish(beam=2, penalty=LengthPenalty(alpha=0.6))
    assert translator.languages == ("en", "de")
    assert translator.engine.name == "torch"


def test_nothing_but_the_bundle_is_needed(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(checkpoint, copy)
    (copy / "optimizer.safetensors").unlink()
    (copy / "state.json").unlink()
    assert opened(copy).translate(["a"]) == opened(checkpoint).translate(["a"])


@pytest.mark.parametrize("name", ["model.safetensors", "subword.model", "recipe.yaml"])
def test_missing_and_damaged_files_are_named(checkpoint: Path, name: str) -> None:
    raw = bytearray((checkpoint / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    (checkpoint / name).write_bytes(raw)
    with pytest.raises(TandemError, match=f"{name} is damaged"):
        opened(checkpoint)
    (checkpoint / name).unlink()
    with pytest.raises(TandemError, match=name):
        opened(checkpoint)


def test_weights_of_another_shape_are_refused(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tandem.checkpoint import bundle

    monkeypatch.setattr(bundle, "read_tensors", lambda _: {"target_embedding": torch.zeros(2, 2)})
    with pytest.raises(TandemError, match="do not fit the recipe"):
        opened(checkpoint)


def test_lines_are_translated_sentence_by_sentence_unless_whole_ones_are_asked_for(checkpoint: Path) -> None:
    line = " ".join(SENTENCES[:2])
    expected = " ".join(each.text for each in opened(checkpoint).translate(SENTENCES[:2]))
    assert opened(checkpoint).translate([line])[0].text == expected
    whole = open_model(checkpoint, engine="torch", device="cpu", sentences=False)
    assert whole.translate([line])[0].text != expected


def test_half_precision_can_be_asked_for(checkpoint: Path) -> None:
    half = open_model(checkpoint, engine="torch", device="cpu", precision="bfloat16")
    scores = [each.score for each in half.translate(SENTENCES[:3])]
    whole = [each.score for each in opened(checkpoint).translate(SENTENCES[:3])]
    assert scores != whole
    assert scores == pytest.approx(whole, rel=0.2)


def test_ctranslate2_needs_a_model_in_its_format(checkpoint: Path) -> None:
    with pytest.raises(TandemError, match="not in CTranslate2's format: export it"):
        open_model(checkpoint, engine="ctranslate2", device="cpu")


def test_a_hugging_face_export_is_read_with_our_own_engine_and_never_converted(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = opened(checkpoint).translate(SENTENCES[:2])
    monkeypatch.setattr(open_module, "is_huggingface", lambda _: True)
    monkeypatch.setattr(open_module, "open_huggingface", open_bundle)
    asked: list[Path] = []
    assert open_model(checkpoint, device="cpu", convert=asked.append).translate(SENTENCES[:2]) == expected
    assert asked == []
    with pytest.raises(
        TandemError, match=r"in Hugging Face's format, .*: make a bundle of it with tandem import huggingface"
    ):
        open_model(checkpoint, device="cpu", engine="ctranslate2", convert=asked.append)


def test_what_cannot_be_converted_is_searched_with_torch(checkpoint: Path) -> None:
    asked: list[Path] = []
    translator = open_model(checkpoint, device="cpu", convert=asked.append)
    assert asked == [checkpoint]
    assert translator.engine.name == "torch"


def test_the_engine_torch_asks_for_no_conversion(checkpoint: Path) -> None:
    asked: list[Path] = []
    open_model(checkpoint, engine="torch", device="cpu", convert=asked.append)
    assert asked == []


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert find_device("auto").type == "cpu"
    with pytest.raises(TandemError, match="no GPU"):
        find_device("cuda")
    with pytest.raises(TandemError, match="no device 'tpu': use cpu, cuda or auto"):
        find_device("tpu")


@given(text=st.text(max_size=40))
@pytest.mark.parametrize("kind", ["bpe", "segmented"])
def test_lines_are_mended_exactly_as_training_text(kind: str, text: str) -> None:
    recipe = Recipe.model_validate(
        {"name": "r", "data": {"train": [{"builtin": {"pairs": 10}}]}, "subword": {"kind": kind}}
    )
    cleaner = Cleaner(recipe.clean, {}, languages=("en", "de"), segmented=kind == "segmented")
    assert build_mend(recipe)(text) == cleaner.mend(text, Tally())[0]
