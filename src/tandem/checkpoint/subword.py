"""The subword model inside a checkpoint: a joint SentencePiece model is `subword.model` there, as in prepared data."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.artefact import JsonValue, is_name, read_manifest
from tandem.data.subword.learn import KIND, VERSION, Subword
from tandem.data.subword.model import SegmentedModel, SentencePieceModel, SubwordModel
from tandem.errors import TandemError
from tandem.files import read_bounded

__all__ = ["SubwordFiles", "open_subword_files", "read_subword_files", "subword_models"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordFiles:
    """A subword model as bytes, and the facts that say how to open it."""

    facts: Mapping[str, JsonValue]
    files: Mapping[str, bytes]


def read_subword_files(folder: Path) -> SubwordFiles:
    """Read a finished subword stage whole: preparing the data anew must not change what a run's checkpoints hold."""
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    return SubwordFiles(
        facts=manifest.facts, files={name: read_bounded(folder / name) for name in manifest.files}
    )


def subword_models(folder: Path, facts: Mapping[str, Any]) -> list[str]:
    """The names of the files in which the subword model of a checkpoint lies: one for both sides, or two."""
    held = facts.get("subword")
    models = held.get("models") if isinstance(held, dict) else None
    if (
        not isinstance(models, list)
        or len(models) not in {1, 2}
        or not all(isinstance(name, str) and is_name(name) for name in models)
    ):
        raise TandemError(
            f"{folder} does not say where its subword model is: copy it again, or make it again."
        )
    return models


def open_subword_files(folder: Path, facts: Mapping[str, Any]) -> Subword:
    """Open the subword model that lies in a checkpoint with these facts."""
    by_word = facts["subword"].get("by_word") is True
    models = [_open(folder / name, by_word=by_word) for name in subword_models(folder, facts)]
    return Subword(source=models[0], target=models[-1])


def _open(path: Path, *, by_word: bool) -> SubwordModel:
    return SegmentedModel(path) if path.suffix == ".txt" else SentencePieceModel(path, by_word=by_word)
