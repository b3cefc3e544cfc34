"""A model as a folder that CTranslate2 runs, with all that makes text of its pieces."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

from tandem.artefact import JsonValue, fingerprint
from tandem.checkpoint.bundle import Bundle, open_bundle
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import read_checkpoint_manifest
from tandem.export.layout import exporting
from tandem.export.sample import sample_sentences
from tandem.export.specification import PLACES, build_specification
from tandem.export.verify import Verified, refuse_unlike, verify_export
from tandem.files import read_bounded
from tandem.progress import SILENT, Progress
from tandem.translate.ctranslate2_engine import load_ctranslate2
from tandem.translate.exported import KIND, VERSION, open_exported_files
from tandem.translate.open import build_translator
from tandem.translate.wish import recipe_wish

__all__ = ["Quantization", "export_ctranslate2", "export_fingerprint"]

Quantization: TypeAlias = Literal["float32", "float16", "bfloat16", "int8"]


def export_ctranslate2(
    folder: Path, target: Path, *, quantization: Quantization = "float32", progress: Progress = SILENT
) -> Verified:
    """Export the model of a checkpoint, and see that it translates as before; else no folder is left."""
    load_ctranslate2()
    bundle = open_bundle(folder)
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    held: Mapping[str, Any] = manifest.facts
    facts: dict[str, JsonValue] = {
        "subword": held["subword"],
        "places": PLACES if bundle.recipe.model.positions == "sinusoidal" else None,
        "quantization": quantization,
        "languages": [bundle.recipe.data.source_language, bundle.recipe.data.target_language],
    }
    mark = export_fingerprint(folder, quantization)
    with exporting(target, kind=KIND, version=VERSION, fingerprint=mark, progress=progress) as build:
        for name in (RECIPE, *held["subword"]["models"]):
            (build.path / name).write_bytes(read_bounded(folder / name))
        with progress.bar(f"converting {folder.name} to {quantization}"):
            _write(bundle, build.path, quantization)
        with progress.bar("verifying"):
            verified = _verify(bundle, folder, build.path, facts)
        refuse_unlike(verified, exact=quantization == "float32")
        build.facts = {**facts, "verified": asdict(verified)}
    return verified


def _write(bundle: Bundle, path: Path, quantization: Quantization) -> None:
    specification = build_specification(bundle.recipe.model, bundle.weights, bundle.subword)
    specification.validate()
    specification.optimize(quantization=quantization)
    specification.save(str(path))


def _verify(bundle: Bundle, folder: Path, path: Path, facts: Mapping[str, Any]) -> Verified:
    exported = open_exported_files(path, facts)
    source = build_translator(bundle, folder, device=torch.device("cpu"))
    return verify_export(
        source.engine,
        exported.engine,
        sample_sentences(bundle.recipe, bundle.subword),
        subword=bundle.subword,
        wish=recipe_wish(bundle.recipe),
    )


def export_fingerprint(folder: Path, quantization: Quantization) -> str:
    """Of all that an export is made from and by."""
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    held: Mapping[str, Any] = manifest.facts
    names = [MODEL, RECIPE, *held["subword"]["models"]]
    library = load_ctranslate2()
    return fingerprint(
        [{name: manifest.files[name].sha256 for name in names}, quantization, str(library.__version__)]
    )
