"""A plain bundle: the part of a checkpoint that translates, without what training would go on with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tandem.checkpoint.bundle import open_bundle
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import read_checkpoint_manifest
from tandem.checkpoint.target import refuse_target
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.errors import TandemError

__all__ = ["export_bundle"]

KEPT = frozenset({"step", "scores", "subword", "averaged"})
"""Facts that hold of the weights alone."""


def export_bundle(folder: Path, target: Path) -> None:
    """Write weights, recipe and subword model of a checkpoint as a folder of their own; every byte is checked."""
    if target.resolve() == folder.resolve():
        raise TandemError(f"{target} is the checkpoint itself: name another folder for the bundle.")
    refuse_target(target)
    bundle = open_bundle(folder)
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    facts: Mapping[str, Any] = manifest.facts
    write_checkpoint(
        target,
        Draft(
            tensors={MODEL: bundle.weights},
            texts={name: (folder / name).read_bytes() for name in (RECIPE, *facts["subword"]["models"])},
            facts={name: fact for name, fact in facts.items() if name in KEPT},
        ),
    )
