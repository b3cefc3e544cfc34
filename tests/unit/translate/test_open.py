import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.translate.small_model import SENTENCES, build_small, write_run

from tandem.checkpoint.layout import step_folder
from tandem.config import Recipe
from tandem.data.corpus.clean import Cleaner
from tandem.data.corpus.tally import Tally
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout
from tandem.translate.open import build_mend, open_translator
from tandem.translate.translator import Translator

CPU = torch.device("cpu")


@pytest.fixture
def checkpoint(tmp_path: Path, subword_folder: Path) -> Path:
    write_run(tmp_path / "run", subword_folder, bleu={7: 12.0})
    return step_folder(RunLayout(tmp_path / "run").checkpoints, 7)


def test_a_checkpoint_translates_as_the_model_that_was_saved(checkpoint: Path, subword: Subword) -> None:
    saved = Translator(build_small(subword, seed=7), subword, device=CPU, beam=2)
    assert open_translator(checkpoint, CPU).translate(SENTENCES[:5]) == saved.translate(SENTENCES[:5])


def test_the_beam_of_the_recipe_can_be_overruled(checkpoint: Path, subword: Subword) -> None:
    wide = Translator(build_small(subword, seed=7), subword, device=CPU, beam=5)
    assert open_translator(checkpoint, CPU, beam=5).translate(SENTENCES[:5]) == wide.translate(SENTENCES[:5])


def test_nothing_but_the_bundle_is_needed(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(checkpoint, copy)
    (copy / "optimizer.safetensors").unlink()
    (copy / "state.json").unlink()
    assert open_translator(copy, CPU).translate(["a"]) == open_translator(checkpoint, CPU).translate(["a"])


def test_weights_of_another_shape_are_refused(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tandem.checkpoint import bundle

    monkeypatch.setattr(bundle, "read_tensors", lambda _: {"target_embedding": torch.zeros(2, 2)})
    with pytest.raises(TandemError, match="do not fit the recipe"):
        open_translator(checkpoint, CPU)


@given(text=st.text(max_size=40))
@pytest.mark.parametrize("kind", ["bpe", "segmented"])
def test_lines_are_mended_exactly_as_training_text(kind: str, text: str) -> None:
    recipe = Recipe.model_validate(
        {"name": "r", "data": {"train": [{"builtin": {"pairs": 10}}]}, "subword": {"kind": kind}}
    )
    cleaner = Cleaner(recipe.clean, {}, languages=("en", "de"), segmented=kind == "segmented")
    assert build_mend(recipe)(text) == cleaner.mend(text, Tally())[0]
