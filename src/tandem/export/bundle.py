"""A plain bundle: the part of a checkpoint that translates, without what training would go on with."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tandem.checkpoint.bundle import Bundle, open_bundle, open_bundle_files
from tandem.checkpoint.layout import KIND, MODEL, RECIPE, VERSION
from tandem.checkpoint.listing import read_checkpoint_manifest
from tandem.checkpoint.write import Draft, fill_checkpoint
from tandem.errors import TandemError
from tandem.export.layout import exporting
from tandem.export.sample import sample_sentences
from tandem.export.verify import Verified, refuse_unlike, verify_export
from tandem.files import read_bounded
from tandem.progress import SILENT, Progress
from tandem.translate.open import build_translator
from tandem.translate.wish import recipe_wish

__all__ = ["export_bundle"]

KEPT = frozenset({"step", "scores", "subword", "averaged"})
"""Facts that hold of the weights alone."""


def export_bundle(folder: Path, target: Path, *, progress: Progress = SILENT) -> Verified:
    """Export what translates of a checkpoint, and see that it translates as before; else no folder is left."""
    if target.resolve() == folder.resolve():
        raise TandemError(f"{target} is the checkpoint itself: name another folder for the bundle.")
    bundle = open_bundle(folder)
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    facts: Mapping[str, Any] = manifest.facts
    draft = Draft(
        tensors={MODEL: bundle.weights},
        texts={name: read_bounded(folder / name) for name in (RECIPE, *facts["subword"]["models"])},
        facts={name: fact for name, fact in facts.items() if name in KEPT},
    )
    mark = draft.fingerprint
    with exporting(target, kind=KIND, version=VERSION, fingerprint=mark, progress=progress) as build:
        with progress.bar(f"writing {folder.name} as a bundle"):
            fill_checkpoint(build, draft)
        with progress.bar("verifying"):
            verified = _verify(bundle, folder, build.path, facts)
        refuse_unlike(verified, exact=True)
        build.facts = {**draft.facts, "verified": asdict(verified)}
    return verified


def _verify(bundle: Bundle, folder: Path, path: Path, facts: Mapping[str, Any]) -> Verified:
    written = open_bundle_files(path, facts)
    source, exported = (
        build_translator(each, where, device=torch.device("cpu"))
        for each, where in ((bundle, folder), (written, path))
    )
    return verify_export(
        source.engine,
        exported.engine,
        sample_sentences(bundle.recipe, bundle.subword),
        subword=bundle.subword,
        wish=recipe_wish(bundle.recipe),
    )
