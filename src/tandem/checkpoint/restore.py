"""Opening a checkpoint to go on training from it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tandem.artefact import JsonValue, fingerprint
from tandem.checkpoint.layout import MODEL, OPTIMIZER, RECIPE, STATE
from tandem.checkpoint.listing import Scores, read_checkpoint_manifest, verify_files
from tandem.checkpoint.tensors import read_tensors
from tandem.errors import TandemError

__all__ = ["Restored", "restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a checkpoint holds; its tensors are mapped from the files, so copy them to where they are used."""

    folder: Path
    step: int
    mark: str
    """Fingerprint of its tensors and its state: the same on every host that has the same checkpoint."""
    scores: Scores
    state: Mapping[str, JsonValue]
    recipe_text: str
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]


def restore(folder: Path) -> Restored:
    """Open a checkpoint after comparing every byte with its checksum; TandemError if it is not whole."""
    try:
        return _restore(folder)
    except OSError as error:
        raise TandemError(
            f"Cannot read {error.filename or folder}: {error.strerror}; check your rights to it."
        ) from error


def _restore(folder: Path) -> Restored:
    manifest, scores = read_checkpoint_manifest(folder)
    verify_files(folder, manifest, list(manifest.files))
    facts: Mapping[str, Any] = manifest.facts
    return Restored(
        folder=folder,
        step=facts["step"],
        mark=fingerprint({name: manifest.files[name].sha256 for name in (MODEL, OPTIMIZER, STATE)}),
        scores=scores,
        state=json.loads((folder / STATE).read_bytes()),
        recipe_text=(folder / RECIPE).read_text(encoding="utf-8"),
        model=read_tensors(folder / MODEL),
        optimizer=read_tensors(folder / OPTIMIZER),
    )
