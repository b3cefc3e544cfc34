"""A plain bundle translates, and holds nothing else."""

from pathlib import Path

import pytest
from safetensors.torch import load_file
from tests.unit.export.few import FEW

from tandem.checkpoint import write
from tandem.checkpoint.listing import read_checkpoint_manifest
from tandem.checkpoint.tensors import write_tensors
from tandem.errors import TandemError
from tandem.export.bundle import export_bundle
from tandem.export.verify import UnlikeError
from tandem.translate.open import open_model


def test_a_bundle_has_what_translates_and_no_more(checkpoint: Path, tmp_path: Path) -> None:
    export_bundle(checkpoint, tmp_path / "bundle")
    names = {path.name for path in (tmp_path / "bundle").iterdir()}
    assert names == {"manifest.json", "model.safetensors", "recipe.yaml", "subword.model"}
    before, after = (load_file(folder / "model.safetensors") for folder in (checkpoint, tmp_path / "bundle"))
    assert all(weight.equal(after[name]) for name, weight in before.items())
    own, other = (
        open_model(folder, engine="torch", device="cpu") for folder in (checkpoint, tmp_path / "bundle")
    )
    assert own.translate(["a dog"]) == other.translate(["a dog"])


def test_a_bundle_is_verified_by_what_it_translates(checkpoint: Path, tmp_path: Path) -> None:
    verified = export_bundle(checkpoint, tmp_path / "bundle")
    assert (verified.sentences, verified.differing) == (FEW, 0)
    assert verified.largest_score_difference == pytest.approx(0.0, abs=1e-5)
    manifest, _ = read_checkpoint_manifest(tmp_path / "bundle")
    assert manifest.facts["verified"] == {
        "sentences": FEW,
        "differing": 0,
        "largest_score_difference": verified.largest_score_difference,
        "likeness": 100.0,
    }


def test_a_bundle_that_translates_otherwise_is_not_left_behind(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        write,
        "write_tensors",
        lambda path, tensors: write_tensors(path, {name: 1.1 * each for name, each in tensors.items()}),
    )
    with pytest.raises(UnlikeError, match="so it was not kept"):
        export_bundle(checkpoint, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_does_not_become_its_own_bundle(checkpoint: Path) -> None:
    before = sorted(path.name for path in checkpoint.iterdir())
    with pytest.raises(TandemError, match="is the checkpoint itself: name another folder"):
        export_bundle(checkpoint, checkpoint)
    assert sorted(path.name for path in checkpoint.iterdir()) == before


def test_a_bundle_of_a_bundle_is_the_same(checkpoint: Path, tmp_path: Path) -> None:
    export_bundle(checkpoint, tmp_path / "bundle")
    export_bundle(tmp_path / "bundle", tmp_path / "again")
    assert (tmp_path / "again/manifest.json").read_bytes() == (tmp_path / "bundle/manifest.json").read_bytes()
