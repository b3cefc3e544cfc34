"""The mean of checkpoints."""

from pathlib import Path

import pytest
import torch
from tests.unit.checkpoint.small_run import BuildStore, save_all
from torch import Tensor

from tandem.checkpoint.average import average_weights, write_average
from tandem.checkpoint.bundle import open_bundle
from tandem.checkpoint.layout import MODEL, RECIPE, step_folder
from tandem.checkpoint.listing import read_checkpoint_manifest
from tandem.checkpoint.store import CheckpointStore, Scores, Snapshot
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.errors import TandemError


def save_models(store: CheckpointStore, folder: Path, *models: dict[str, Tensor]) -> list[Path]:
    for step, model in enumerate(models):
        save_all(store, Snapshot(step=step, model=model, optimizer={}, state={}, scores=Scores()))
    return [step_folder(folder, step) for step in range(len(models))]


def test_the_mean_is_taken_weight_by_weight_and_keeps_the_type(build_store: BuildStore, folder: Path) -> None:
    models = [
        {"a": torch.tensor([1.0, 2.0]) * n, "b": torch.tensor(n, dtype=torch.bfloat16)} for n in (1, 2, 6)
    ]
    mean = average_weights(save_models(build_store(), folder, *models))
    assert mean["a"].tolist() == [3.0, 6.0]
    assert mean["b"].dtype == torch.bfloat16
    assert mean["b"].item() == 3.0


def test_large_terms_that_cancel_lose_no_small_one(build_store: BuildStore, folder: Path) -> None:
    models = [{"a": torch.tensor([value])} for value in (1e8, 3.0, -1e8)]
    assert average_weights(save_models(build_store(), folder, *models))["a"].tolist() == [1.0]


def test_one_checkpoint_is_its_own_mean(build_store: BuildStore, folder: Path) -> None:
    model = {"a": torch.randn(50)}
    assert torch.equal(average_weights(save_models(build_store(), folder, model))["a"], model["a"])


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ({"a": torch.zeros(3)}, r"a is \(2,\) and \(3,\)"),
        ({"b": torch.zeros(2)}, r"a is \(2,\) and missing"),
        ({"a": torch.zeros(2), "b": torch.zeros(())}, r"b is missing and \(\)"),
    ],
)
def test_other_models_are_refused(
    build_store: BuildStore, folder: Path, other: dict[str, Tensor], complaint: str
) -> None:
    folders = save_models(build_store(), folder, {"a": torch.zeros(2)}, other)
    with pytest.raises(TandemError, match=f"different models .{complaint}"):
        average_weights(folders)


def test_models_with_other_pieces_are_refused(build_store: BuildStore, folder: Path, tmp_path: Path) -> None:
    (first,) = save_models(build_store(), folder, {"a": torch.zeros(2)})
    manifest, _ = read_checkpoint_manifest(first, sizes=False)
    texts = {name: (first / name).read_bytes() for name in (RECIPE, "subword.model")}
    texts["subword.model"] += b"x"
    draft = Draft(tensors={MODEL: {"a": torch.zeros(2)}}, texts=texts, facts=manifest.facts)
    write_checkpoint(tmp_path / "other", draft)
    with pytest.raises(TandemError, match="different subword models"):
        average_weights([first, tmp_path / "other"])


def test_nothing_has_no_mean() -> None:
    with pytest.raises(TandemError, match="nothing to average"):
        average_weights([])


def test_a_written_mean_is_a_bundle(build_store: BuildStore, folder: Path, tmp_path: Path) -> None:
    folders = save_models(build_store(), folder, {"a": torch.tensor([1.0])}, {"a": torch.tensor([2.0])})
    write_average(folders, tmp_path / "mean")
    bundle = open_bundle(tmp_path / "mean")
    assert bundle.weights["a"].tolist() == [1.5]
    assert bundle.recipe.name == "tiny"
    assert bundle.subword.fingerprint == open_bundle(folders[0]).subword.fingerprint


def test_a_damaged_part_does_not_go_into_a_written_mean(
    build_store: BuildStore, folder: Path, tmp_path: Path
) -> None:
    folders = save_models(build_store(), folder, {"a": torch.zeros(2)})
    with (folders[0] / "subword.model").open("ab") as file:
        file.write(b"x")
    with pytest.raises(TandemError, match=r"subword\.model is damaged"):
        write_average(folders, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()
