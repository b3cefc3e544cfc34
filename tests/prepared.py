"""Folders that look like prepared data, made in no time and as big as a test wants."""

import random
from collections.abc import Mapping
from pathlib import Path

from tandem.artefact import building, fingerprint

__all__ = ["RECIPE", "content", "make_prepared"]

RECIPE = """\
name: made-up
data:
  train:
    - builtin: {pairs: 10}
  valid:
    builtin: {pairs: 10, split: valid}
"""


def make_prepared(folder: Path, *, seed: int = 0, parts: int = 3, part_bytes: int = 5_000) -> Path:
    """Make a folder with all that training reads; another seed gives other data."""
    chance = random.Random(seed)
    names = {
        "subword": ["subword.model"],
        "train": [f"part-{number:05d}.bin" for number in range(parts)],
        "held-out/valid/text": ["source.txt", "target.txt"],
        "held-out/valid/shards": ["part-00000.bin"],
    }
    for name, files in names.items():
        _make_artefact(folder / name, {file: _half_random(chance, part_bytes) for file in files})
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "card.json").write_text(f'{{"seed": {seed}}}')
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _make_artefact(folder: Path, files: Mapping[str, bytes]) -> None:
    mark = fingerprint([data.hex() for data in files.values()])
    with building(folder, kind=folder.name, version=1, fingerprint=mark) as build:
        for file, data in files.items():
            (build.path / file).write_bytes(data)
        build.facts = {"files": len(files)}


def _half_random(chance: random.Random, count: int) -> bytes:
    """Bytes of which half can be packed away, as of small numbers."""
    data = bytearray(count)
    data[::2] = chance.randbytes((count + 1) // 2)
    return bytes(data)
