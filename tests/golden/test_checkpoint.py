"""A checkpoint of each format version, written once and kept: it must open as it did then."""

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tandem.artefact import read_manifest, verify
from tandem.checkpoint.bundle import find_bundle, open_bundle
from tandem.checkpoint.listing import list_checkpoints
from tandem.checkpoint.restore import restore
from tandem.checkpoint.store import Scores
from tandem.checkpoint.tensors import write_tensors

FOLDER = Path(__file__).parent / "checkpoint-v1"
SENTENCE = "the old house is small"
IDS = [28, 4, 13, 12, 20, 4, 16, 13, 15, 8, 5, 34, 4, 8, 17, 6, 12, 12]


def expected_model() -> dict[str, Tensor]:
    return {
        "embedding.weight": torch.arange(48, dtype=torch.float32).reshape(12, 4) / 7,
        "output.bias": -torch.arange(12, dtype=torch.float32) / 3,
    }


def expected_optimizer() -> dict[str, Tensor]:
    return {
        "first.embedding.weight": torch.arange(48).reshape(12, 4).to(torch.bfloat16),
        "second.embedding.weight": torch.arange(48).reshape(12, 4).to(torch.float16),
        "scale": torch.tensor(65536.0),
        "step": torch.tensor(4000),
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that holds the checkpoint under the name that the store gave it."""
    shutil.copytree(FOLDER, tmp_path / "checkpoints" / "step-00004000")
    return tmp_path


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_version_1_is_whole() -> None:
    verify(FOLDER, read_manifest(FOLDER, kind="checkpoint", version=1))


def test_version_1_restores_as_it_was_saved() -> None:
    found = restore(FOLDER)
    assert (found.step, found.scores) == (4000, Scores(loss=1.5943, bleu=26.4))
    assert found.state == {"step": 4000, "cursor": {"epoch": 1, "update": 250}, "tokens": 100_000_000}
    assert_equal(dict(found.model), expected_model())
    assert_equal(dict(found.optimizer), expected_optimizer())


def test_version_1_is_listed(run: Path) -> None:
    (info,) = list_checkpoints(run / "checkpoints", verify=True)
    assert info.is_complete
    assert info.is_newest
    assert info.is_best_loss
    assert info.is_best_bleu
    assert info.bytes == sum(path.stat().st_size for path in FOLDER.iterdir())


def test_version_1_still_translates(run: Path) -> None:
    bundle = open_bundle(find_bundle(run))
    assert bundle.recipe.name == "golden"
    assert bundle.recipe.model.preset == "tiny"
    assert bundle.subword.vocabulary == 96
    ids = bundle.subword.source.encode([SENTENCE]).ids.tolist()
    assert ids == IDS
    assert bundle.subword.target.decode(ids) == SENTENCE
    assert_equal(dict(bundle.weights), expected_model())


@pytest.mark.parametrize("name", ["model", "optimizer"])
def test_version_1_is_still_written_with_the_same_bytes(tmp_path: Path, name: str) -> None:
    tensors = expected_model() if name == "model" else expected_optimizer()
    write_tensors(tmp_path / "again", tensors)
    assert (tmp_path / "again").read_bytes() == (FOLDER / f"{name}.safetensors").read_bytes()
