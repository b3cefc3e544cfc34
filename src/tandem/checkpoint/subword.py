"""The subword model inside a checkpoint: a joint SentencePiece model is `subword.model` there, as in prepared data."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.artefact import JsonValue, read_manifest
from tandem.data.subword.learn import KIND, VERSION, Subword
from tandem.data.subword.model import SegmentedModel, SentencePieceModel, SubwordModel

__all__ = ["SubwordFiles", "open_subword_files", "read_subword_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordFiles:
    """A subword model as bytes, and the facts that say how to open it."""

    facts: Mapping[str, JsonValue]
    files: Mapping[str, bytes]


def read_subword_files(folder: Path) -> SubwordFiles:
    """Read a finished subword stage whole: preparing the data anew must not change what a run's checkpoints hold."""
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    return SubwordFiles(
        facts=manifest.facts, files={name: (folder / name).read_bytes() for name in manifest.files}
    )


def open_subword_files(folder: Path, facts: Mapping[str, Any]) -> Subword:
    """Open the subword model that lies in a checkpoint."""
    models = [_open(folder / name, by_word=facts["by_word"]) for name in facts["models"]]
    return Subword(source=models[0], target=models[-1])


def _open(path: Path, *, by_word: bool) -> SubwordModel:
    return SegmentedModel(path) if path.suffix == ".txt" else SentencePieceModel(path, by_word=by_word)
