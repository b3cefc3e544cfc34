"""A bundle: everything needed to translate, from a run or from a checkpoint."""

from pathlib import Path

import pytest
import torch
from tests.unit.checkpoint.small_run import BuildStore, make_subword, save_all, snapshot, weights

from tandem.artefact import JsonValue
from tandem.checkpoint.bundle import find_bundle, open_bundle
from tandem.checkpoint.layout import step_folder
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.data.subword.learn import open_subword
from tandem.errors import TandemError

TOKENS = b"<unk>\n<s>\n</s>\n<pad>\nthe\nho@@\nuse\n"


def test_a_bundle_holds_recipe_subword_model_and_weights(
    build_store: BuildStore, folder: Path, subword_folder: Path
) -> None:
    save_all(build_store(), snapshot(4))
    bundle = open_bundle(step_folder(folder, 4))
    assert bundle.recipe.name == "tiny"
    assert bundle.subword.fingerprint == open_subword(subword_folder).fingerprint
    assert bundle.subword.source.encode(["the house"]).ids.size > 1
    assert all(torch.equal(bundle.weights[name], tensor) for name, tensor in weights(4).items())


@pytest.mark.parametrize("names", [("source.model", "target.model"), ("subword.txt",)])
def test_other_layouts_of_subword_models_come_along(
    build_store: BuildStore, folder: Path, tmp_path: Path, piece_model: bytes, names: tuple[str, ...]
) -> None:
    files = {name: TOKENS if name.endswith(".txt") else piece_model for name in names}
    subword = make_subword(tmp_path / "subword", files)
    save_all(build_store(subword=subword), snapshot(4))
    found, expected = open_bundle(step_folder(folder, 4)).subword, open_subword(subword)
    assert found.fingerprint == expected.fingerprint
    ids = expected.target.encode(["the house ho@@ use"])
    assert found.target.encode(["the house ho@@ use"]).ids.tolist() == ids.ids.tolist()
    assert found.source.decode(ids.ids.tolist()) == expected.source.decode(ids.ids.tolist())


def test_a_bundle_opens_without_optimiser_and_state_and_from_another_place(
    build_store: BuildStore, folder: Path, tmp_path: Path
) -> None:
    save_all(build_store(), snapshot(4))
    for name in ("optimizer.safetensors", "state.json"):
        (step_folder(folder, 4) / name).unlink()
    moved = step_folder(folder, 4).rename(tmp_path / "english-german")
    assert find_bundle(moved) == moved
    assert torch.equal(open_bundle(moved).weights["bias"], weights(4)["bias"])


@pytest.mark.parametrize("name", ["model.safetensors", "recipe.yaml", "subword.model"])
def test_a_damaged_or_missing_part_is_named(build_store: BuildStore, folder: Path, name: str) -> None:
    save_all(build_store(), snapshot(4))
    path = step_folder(folder, 4) / name
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(TandemError, match=f"{name} is damaged"):
        open_bundle(step_folder(folder, 4))
    path.unlink()
    with pytest.raises(TandemError, match=f"Cannot read .*{name}: No such file"):
        open_bundle(step_folder(folder, 4))


def test_a_run_means_its_best_by_bleu_else_by_loss_else_its_newest(
    build_store: BuildStore, folder: Path
) -> None:
    store = build_store()
    save_all(store, snapshot(1))
    assert find_bundle(folder.parent) == step_folder(folder, 1)
    save_all(store, snapshot(2, loss=1.0), snapshot(3, loss=2.0))
    assert find_bundle(folder.parent) == step_folder(folder, 2)
    save_all(store, snapshot(4, loss=3.0, bleu=20.0), snapshot(5, loss=3.0, bleu=10.0))
    assert find_bundle(folder.parent) == step_folder(folder, 4)
    (step_folder(folder, 4) / "model.safetensors").unlink()
    assert find_bundle(folder.parent) == step_folder(folder, 5)


def test_a_folder_with_nothing_to_translate_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"no manifest\.json.* no whole step-.* folder in .*checkpoints"):
        find_bundle(tmp_path)


@pytest.mark.parametrize("weights", ["model.safetensors", "model.bin"])
def test_a_model_without_its_manifest_is_called_that(weights: str, tmp_path: Path) -> None:
    for name in (weights, "recipe.yaml", "subword.model"):
        (tmp_path / name).touch()
    with pytest.raises(TandemError, match=r"its manifest\.json is missing.*: copy the folder again"):
        find_bundle(tmp_path)


def test_a_manifest_that_names_files_outside_is_refused(tmp_path: Path) -> None:
    subword: JsonValue = {"by_word": False, "models": ["../../outside.model"]}
    draft = Draft(
        tensors={"model.safetensors": weights(1)},
        texts={"recipe.yaml": b"name: tiny\n"},
        facts={"step": 1, "scores": {"loss": None, "bleu": None}, "subword": subword},
    )
    write_checkpoint(tmp_path / "evil", draft)
    with pytest.raises(TandemError, match="does not say where its subword model is"):
        open_bundle(tmp_path / "evil")
