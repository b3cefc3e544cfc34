"""The valid and test sets: kept whole and as they are, since scores are made on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import building, maybe_fresh, read_manifest, write_atomic
from tandem.data.corpus.files import CorpusFiles
from tandem.data.corpus.filters import HeldOutSentences, held_out_key
from tandem.data.corpus.read import RawChunk, read_chunks
from tandem.data.corpus.stream import MAX_LINE_BYTES
from tandem.errors import TandemError
from tandem.files import read_bounded

__all__ = ["HeldOutSet", "held_out_sentences", "keep_held_out", "open_held_out"]

KIND = "held-out text"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutSet:
    """A valid or test set, line by line as its files have it."""

    name: str
    source: Sequence[str]
    target: Sequence[str]


def keep_held_out(folder: Path, files: CorpusFiles, *, name: str, seed: int, fingerprint: str) -> HeldOutSet:
    """Copy a held-out set into `folder`, unless it is there already."""
    if maybe_fresh(folder, kind=KIND, version=VERSION, fingerprint=fingerprint) is None:
        with building(folder, kind=KIND, version=VERSION, fingerprint=fingerprint) as build:
            source, target = _read_all(files, seed)
            for side, sentences in (("source", source), ("target", target)):
                write_atomic(build.path / f"{side}.txt", "".join(f"{line}\n" for line in sentences).encode())
            build.facts = {"name": name, "pairs": len(source)}
    return open_held_out(folder)


def open_held_out(folder: Path) -> HeldOutSet:
    """Open a held-out set."""
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    source, target = (
        read_bounded(folder / f"{side}.txt").decode().split("\n")[:-1] for side in ("source", "target")
    )
    return HeldOutSet(name=str(manifest.facts["name"]), source=source, target=target)


def held_out_sentences(pairs: Sequence[tuple[str, str]]) -> HeldOutSentences:
    """What training text must not hold, from the mended pairs of a set."""
    source, target = (frozenset(held_out_key(pair[side]) for pair in pairs) - {""} for side in (0, 1))
    return HeldOutSentences(source=source, target=target)


def _read_all(files: CorpusFiles, seed: int) -> tuple[list[str], list[str]]:
    source: list[str] = []
    target: list[str] = []
    where = ", ".join(path.name for path in files.paths)
    for chunk in read_chunks(files, seed=seed):
        for number, row in enumerate(_rows(chunk), start=chunk.first_line):
            left, right = _decoded(row, f"Line {number:,} of the held-out set {files.name} ({where})")
            source.append(left)
            target.append(right)
    return source, target


def _rows(chunk: RawChunk) -> list[list[bytes]]:
    lines = chunk.source.split(b"\n")[:-1]
    if chunk.target is not None:
        return [list(row) for row in zip(lines, chunk.target.split(b"\n"), strict=False)]
    return [[line] if len(line) >= MAX_LINE_BYTES else line.split(b"\t", 2)[:2] for line in lines]


def _decoded(row: list[bytes], where: str) -> tuple[str, str]:
    """Held-out lines are never dropped: a score over fewer lines would not be the score of the set."""
    if any(len(side) >= MAX_LINE_BYTES for side in row):
        raise TandemError(f"{where} is longer than {MAX_LINE_BYTES >> 10} kB: mend that line.")
    if len(row) != 2:
        raise TandemError(f"{where} has no tab between source and target: mend that line.")
    try:
        left, right = (side.decode().removesuffix("\r") for side in row)
    except UnicodeDecodeError as error:
        raise TandemError(f"{where} is not UTF-8: mend that line.") from error
    return left, right
