"""Writing one checkpoint: beside its place, hashed on the way, flushed to the disk, and then renamed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tandem.artefact import Build, JsonValue, building, fingerprint
from tandem.checkpoint.layout import KIND, MANIFEST, RECIPE, VERSION
from tandem.checkpoint.tensors import write_tensors

__all__ = ["Draft", "fill_checkpoint", "write_checkpoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a checkpoint will hold."""

    tensors: Mapping[str, Mapping[str, Tensor]]
    """By file name; of the host, and nobody changes them meanwhile."""
    texts: Mapping[str, bytes]
    """By file name."""
    facts: Mapping[str, JsonValue]

    @property
    def fingerprint(self) -> str:
        """Of what it depends on, as the manifest keeps it."""
        return fingerprint(self.texts[RECIPE].decode())


def write_checkpoint(folder: Path, draft: Draft) -> dict[str, int]:
    """Write a checkpoint and return the bytes of each file; OSError or TandemError when the disk refuses."""
    with building(folder, kind=KIND, version=VERSION, fingerprint=draft.fingerprint) as build:
        sizes = fill_checkpoint(build, draft)
    return {**sizes, MANIFEST: (folder / MANIFEST).stat().st_size}


def fill_checkpoint(build: Build, draft: Draft) -> dict[str, int]:
    """Write the files of a checkpoint into a folder in the making, and return the bytes of each."""
    sizes: dict[str, int] = {}
    for name, text in draft.texts.items():
        sizes[name] = (build.path / name).write_bytes(text)
    for name, tensors in draft.tensors.items():
        entry = write_tensors(build.path / name, tensors)
        build.known(name, bytes=entry.bytes, sha256=entry.sha256)
        sizes[name] = entry.bytes
    build.facts = draft.facts
    return sizes
