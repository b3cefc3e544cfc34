"""Writing one checkpoint: beside its place, hashed on the way, flushed to the disk, and then renamed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tandem.artefact import JsonValue, building, fingerprint
from tandem.checkpoint.layout import KIND, MANIFEST, RECIPE, VERSION
from tandem.checkpoint.tensors import write_tensors

__all__ = ["Draft", "write_checkpoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a checkpoint will hold."""

    tensors: Mapping[str, Mapping[str, Tensor]]
    """By file name; of the host, and nobody changes them meanwhile."""
    texts: Mapping[str, bytes]
    """By file name."""
    facts: Mapping[str, JsonValue]


def write_checkpoint(folder: Path, draft: Draft) -> dict[str, int]:
    """Write a checkpoint and return the bytes of each file; OSError or TandemError when the disk refuses."""
    mark = fingerprint(draft.texts[RECIPE].decode())
    sizes: dict[str, int] = {}
    with building(folder, kind=KIND, version=VERSION, fingerprint=mark) as build:
        for name, text in draft.texts.items():
            sizes[name] = (build.path / name).write_bytes(text)
        for name, tensors in draft.tensors.items():
            entry = write_tensors(build.path / name, tensors)
            build.known(name, bytes=entry.bytes, sha256=entry.sha256)
            sizes[name] = entry.bytes
        build.facts = draft.facts
    return {**sizes, MANIFEST: (folder / MANIFEST).stat().st_size}
