"""Folders that `tandem export` has written for CTranslate2: what they are called inside, and how they are opened."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.artefact import Manifest, parse_manifest, read_manifest, read_raw_manifest, sha256_file
from tandem.checkpoint.layout import RECIPE
from tandem.checkpoint.subword import open_subword_files
from tandem.config import Recipe, load_recipe
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.translate.ctranslate2_engine import Ctranslate2Engine, read_vocabularies
from tandem.translate.marks import build_marks

__all__ = ["KIND", "VERSION", "Exported", "is_ctranslate2", "open_ctranslate2", "open_exported_files"]

KIND = "CTranslate2 model"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An exported model with all that makes text of its pieces."""

    engine: Ctranslate2Engine
    subword: Subword
    recipe: Recipe


def is_ctranslate2(folder: Path) -> bool:
    """Whether the folder says of itself that it was exported to CTranslate2; it may be damaged."""
    try:
        return parse_manifest(read_raw_manifest(folder), folder=folder).kind == KIND
    except (OSError, TandemError):
        return False


def open_ctranslate2(
    folder: Path,
    *,
    device: str = "cpu",
    threads: int | None = None,
    batch_tokens: int | None = None,
) -> Exported:
    """Open an exported folder, every byte of it checked; files that were laid beside its own do no harm."""
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    _refuse_damaged(folder, manifest)
    return open_exported_files(
        folder, manifest.facts, device=device, threads=threads, batch_tokens=batch_tokens
    )


def open_exported_files(
    folder: Path,
    facts: Mapping[str, Any],
    *,
    device: str = "cpu",
    threads: int | None = None,
    batch_tokens: int | None = None,
) -> Exported:
    """Open the files alone, with the facts that the manifest has or will have."""
    quantization, longest = facts.get("quantization"), facts.get("places")
    if type(quantization) is not str or (longest is not None and type(longest) is not int):
        raise TandemError(f"{folder} does not say how its model is kept: export the model again.")
    subword = open_subword_files(folder, facts)
    _, target = read_vocabularies(folder)
    engine = Ctranslate2Engine(
        folder,
        marks=build_marks(subword, vocabulary=len(target)),
        device=device,
        threads=threads,
        quantization=quantization,
        longest=longest,
        batch_tokens=batch_tokens,
    )
    return Exported(engine=engine, subword=subword, recipe=load_recipe(folder / RECIPE).recipe)


def _refuse_damaged(folder: Path, manifest: Manifest) -> None:
    for name, entry in manifest.files.items():
        if sha256_file(folder / name) != entry.sha256:
            raise TandemError(
                f"{folder / name} is damaged (its checksum differs): export the model again, or copy the folder again."
            )
