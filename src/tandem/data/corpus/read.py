"""Raw text in chunks of aligned lines: what cleaning works on, one chunk a worker."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from tandem.data.corpus.align import suspicious_line
from tandem.data.corpus.builtin import builtin_pairs
from tandem.data.corpus.files import CorpusFiles, TextFiles
from tandem.data.corpus.stream import read_lines
from tandem.errors import TandemError

__all__ = ["CHUNK_BYTES", "CHUNK_LINES", "RawChunk", "read_chunks"]

CHUNK_LINES = 16_384
CHUNK_BYTES = 8 << 20
"""A chunk ends at whichever comes first, so that memory is bounded whatever the lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawChunk:
    """Aligned raw lines, each ending in a newline byte; `target` None means that `source` holds tab-separated pairs."""

    first_line: int
    """Line number of the first pair, counted from 1 over the corpus."""
    lines: int
    source: bytes
    target: bytes | None


def read_chunks(files: CorpusFiles, *, seed: int) -> Iterator[RawChunk]:
    """Stream a corpus as chunks. The cut depends on the text alone, so a second reading gives the same chunks.

    Raises TandemError where the sides have unequal numbers of lines, or a file is empty, damaged or changes.
    """
    first_line = 1
    for pairs in _texts(files, seed):
        while lines := _take(pairs):
            source = b"".join(line for line, _ in lines)
            target = None if lines[0][1] is None else b"".join(line or b"" for _, line in lines)
            yield RawChunk(first_line=first_line, lines=len(lines), source=source, target=target)
            first_line += len(lines)


def _texts(files: CorpusFiles, seed: int) -> Iterator[Iterator[tuple[bytes, bytes | None]]]:
    builtin = files.corpus.builtin
    if builtin is not None:
        pairs = builtin_pairs(seed=seed, split=builtin.split, count=builtin.pairs)
        yield ((f"{source}\n".encode(), f"{target}\n".encode()) for source, target in pairs)
    for text in files.texts:
        if text.target is None:
            yield ((line, None) for line in _not_empty(text.source))
        else:
            yield _aligned(text.source, text.target)


def _take(pairs: Iterator[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
    taken: list[tuple[bytes, bytes | None]] = []
    size = 0
    for pair in islice(pairs, CHUNK_LINES):
        taken.append(pair)
        size += len(pair[0]) + len(pair[1] or b"")
        if size >= CHUNK_BYTES:
            break
    return taken


def _aligned(source: Path, target: Path) -> Iterator[tuple[bytes, bytes]]:
    sides = _not_empty(source), _not_empty(target)
    for count, (left, right) in enumerate(zip_longest(*sides)):
        if left is None or right is None:
            rest = 1 + sum(1 for _ in (sides[0] if right is None else sides[1]))
            counts = (count + rest, count) if right is None else (count, count + rest)
            raise TandemError(_unequal(TextFiles(source=source, target=target), counts))
        yield left, right


def _not_empty(path: Path) -> Iterator[bytes]:
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise TandemError(f"{path} is empty; put text there or take it out of the recipe.")
    yield first
    yield from lines


def _unequal(text: TextFiles, counts: tuple[int, int]) -> str:
    assert text.target is not None
    line = suspicious_line(read_lines(text.source), read_lines(text.target), counts)
    return (
        f"The sides differ in length: {text.source} has {counts[0]:,} lines, {text.target} has {counts[1]:,}; "
        f"they seem to part at line {line:,}: mend the files there."
    )
