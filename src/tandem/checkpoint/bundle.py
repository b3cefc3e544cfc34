"""The part of a checkpoint that translates: weights, recipe and subword model; no optimiser is needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tandem.checkpoint.layout import MANIFEST, MODEL, RECIPE
from tandem.checkpoint.listing import (
    by_bleu,
    by_loss,
    list_checkpoints,
    read_checkpoint_manifest,
    verify_files,
)
from tandem.checkpoint.subword import open_subword_files, subword_models
from tandem.checkpoint.tensors import read_tensors
from tandem.config import Recipe, load_recipe
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout

__all__ = ["Bundle", "check_bundle", "find_bundle", "open_bundle", "open_bundle_files", "read_weights"]

WEIGHTS = (MODEL, "model.bin")
"""Files that a run has in its checkpoints only: ours and Hugging Face's, and CTranslate2's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Everything needed to translate."""

    recipe: Recipe
    subword: Subword
    weights: Mapping[str, Tensor]
    """Mapped from the file."""


def open_bundle(folder: Path) -> Bundle:
    """Open what translates in a checkpoint, every byte of it checked."""
    return open_bundle_files(folder, check_bundle(folder))


def check_bundle(folder: Path) -> Mapping[str, Any]:
    """Compare what translates in a checkpoint with its checksums, and return the manifest's facts."""
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    facts: Mapping[str, Any] = manifest.facts
    verify_files(folder, manifest, [MODEL, RECIPE, *subword_models(folder, facts)])
    return facts


def open_bundle_files(folder: Path, facts: Mapping[str, Any]) -> Bundle:
    """Open the files alone, with the facts that the manifest has or will have."""
    return Bundle(
        recipe=load_recipe(folder / RECIPE).recipe,
        subword=open_subword_files(folder, facts),
        weights=read_tensors(folder / MODEL),
    )


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint alone, every byte of them checked."""
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    verify_files(folder, manifest, [MODEL])
    return read_tensors(folder / MODEL)


def find_bundle(path: Path) -> Path:
    """The checkpoint that a path means: itself, or the best of a run by BLEU, else by loss, else the newest."""
    if (path / MANIFEST).is_file():
        return path
    if (path / RECIPE).is_file() and any((path / name).is_file() for name in WEIGHTS):
        raise TandemError(
            f"{path} holds a model, but its {MANIFEST} is missing, so that nothing in it can be checked: copy the "
            "folder again with all of its files, export the model again, or take another checkpoint."
        )
    checkpoints = RunLayout(path).checkpoints
    whole = [info for info in list_checkpoints(checkpoints) if info.is_complete]
    best = [*by_bleu(whole)[:1], *by_loss(whole)[:1], *whole[-1:]]
    if not best:
        raise TandemError(
            f"{path} is neither a checkpoint (it has no {MANIFEST}) nor a run with one (there is no whole step-… "
            f"folder in {checkpoints}): name a run folder, or a checkpoint in one."
        )
    return best[0].folder
