"""Opening a checkpoint to go on training from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tandem.artefact import JsonValue, fingerprint
from tandem.checkpoint.layout import MODEL, OPTIMIZER, RECIPE, STATE
from tandem.checkpoint.listing import Scores, read_checkpoint_manifest, verify_files
from tandem.checkpoint.tensors import read_tensors
from tandem.errors import TandemError
from tandem.files import read_bounded, read_json

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


def _read_state(folder: Path) -> Mapping[str, JsonValue]:
    try:
        held = read_json(folder / STATE)
    except ValueError:
        held = None
    if not isinstance(held, dict):
        raise TandemError(f"{folder / STATE} does not say where training stood: use another checkpoint.")
    return held


def _restore(folder: Path) -> Restored:
    manifest, scores = read_checkpoint_manifest(folder)
    verify_files(folder, manifest, list(manifest.files))
    step, lacking = manifest.facts.get("step"), {MODEL, OPTIMIZER, STATE} - manifest.files.keys()
    if type(step) is not int or lacking:
        raise TandemError(f"{folder} is no checkpoint that training can go on from: use another one.")
    return Restored(
        folder=folder,
        step=step,
        mark=fingerprint({name: manifest.files[name].sha256 for name in (MODEL, OPTIMIZER, STATE)}),
        scores=scores,
        state=_read_state(folder),
        recipe_text=read_bounded(folder / RECIPE).decode(),
        model=read_tensors(folder / MODEL),
        optimizer=read_tensors(folder / OPTIMIZER),
    )
