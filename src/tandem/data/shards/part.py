"""One part of a shard set: a little-endian binary file that is read through a memory map."""

# header   64 bytes: magic, version, bytes of an id, pairs, source ids, target ids, corpus number
# lengths  uint16 x pairs of the source, then of the target: pieces without end mark
# offsets  uint32 x pairs: where a pair begins in the ids
# ids      uint16 or uint32: source pieces, then target pieces, pair after pair (one page has both)
#
# Every section starts at a multiple of 64 bytes, and the file ends with the last id.

import hashlib
import mmap
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tandem.artefact import replacing, sha256_file
from tandem.data.shards.ragged import Ragged
from tandem.errors import TandemError

__all__ = [
    "BLOCK_PAIRS",
    "Part",
    "ShardFacts",
    "id_type",
    "open_part",
    "part_name",
    "read_facts",
    "write_shard",
]

BLOCK_PAIRS = 1024
MAX_PIECES = 65_535

_MAGIC = b"TANDEMSH"
_VERSION = 1
_HEADER = struct.Struct("<8sIIQQQI20x")
_ALIGN = 64
_MAX_IDS = 2**32 - 1
_CURE = "run `tandem data prepare` again"
_ID_TYPES: dict[int, np.dtype[Any]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFacts:
    """What the index and the manifest must know of one part; tokens are pieces and one end mark."""

    name: str
    bytes: int
    sha256: str
    corpus: int
    pairs: int
    longest_source: int
    longest_target: int
    source_tokens: NDArray[np.int64] = field(compare=False, repr=False)
    """Of each block of 1,024 consecutive pairs."""
    target_tokens: NDArray[np.int64] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The sections of one mapped part; the arrays are read-only views of the file."""

    corpus: int
    source_lengths: NDArray[np.uint16]
    target_lengths: NDArray[np.uint16]
    offsets: NDArray[np.uint32]
    ids: NDArray[np.unsignedinteger[Any]]


class _Section(NamedTuple):
    start: int
    dtype: np.dtype[Any]
    size: int

    def of(self, buffer: mmap.mmap | bytearray) -> NDArray[Any]:
        return np.frombuffer(buffer, dtype=self.dtype, count=self.size, offset=self.start)


def part_name(number: int) -> str:
    """File name of a part."""
    return f"part-{number:05d}.bin"


def id_type(vocabulary: int) -> np.dtype[Any]:
    """The smallest type that holds every id of a vocabulary."""
    return _ID_TYPES[2 if vocabulary <= 2**16 else 4]


def write_shard(
    path: Path, *, source: Ragged, target: Ragged, vocabulary: int, corpus: int = 0
) -> ShardFacts:
    """Write one part beside its place and rename it there; the same pairs give the same bytes."""
    _check(path, source=source, target=target, vocabulary=vocabulary)
    id_bytes = id_type(vocabulary).itemsize
    sections, size = _lay_out(len(source), len(source.ids) + len(target.ids), id_bytes)
    buffer = bytearray(size)
    _HEADER.pack_into(
        buffer, 0, _MAGIC, _VERSION, id_bytes, len(source), len(source.ids), len(target.ids), corpus
    )
    source_lengths, target_lengths, offsets, ids = (section.of(buffer) for section in sections)
    source_lengths[:] = source.lengths
    target_lengths[:] = target.lengths
    source_ends = np.cumsum(source.lengths, dtype=np.int64)
    target_starts = np.cumsum(target.lengths, dtype=np.int64) - target.lengths
    offsets[:] = source_ends - source.lengths + target_starts
    ids[np.arange(len(source.ids)) + np.repeat(target_starts, source.lengths)] = source.ids
    ids[np.arange(len(target.ids)) + np.repeat(source_ends, target.lengths)] = target.ids
    with replacing(path) as file:
        file.write(buffer)
    return _build_facts(path, digest=hashlib.sha256(buffer).hexdigest(), part=_read_part(buffer, path))


def open_part(path: Path, *, folder: int | None = None) -> Part:
    """Map a part, looked up by its name in the open `folder` where one is given; a damaged one is a TandemError."""
    try:
        name = path if folder is None else path.name
        # Neither a link, nor a pipe that would be waited for: one is no part.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEADER.size:
                raise _damaged(path, f"has {size} bytes")
            return _read_part(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), path)
    except FileNotFoundError:
        raise _damaged(path, "is missing") from None


def read_facts(path: Path) -> ShardFacts:
    """Facts of a part that an interrupted preparation left whole, the same as `write_shard` gave."""
    return _build_facts(path, digest=sha256_file(path), part=open_part(path))


def _read_part(buffer: mmap.mmap | bytearray, path: Path) -> Part:
    magic, version, id_bytes, pairs, source_ids, target_ids, corpus = _HEADER.unpack_from(buffer)
    if magic != _MAGIC:
        raise _damaged(path, "is not a shard part")
    if version != _VERSION or id_bytes not in _ID_TYPES:
        raise TandemError(f"{path} has shard format {version}, but this Tandem reads {_VERSION}: {_CURE}.")
    sections, size = _lay_out(pairs, source_ids + target_ids, id_bytes)
    if size != len(buffer):
        raise _damaged(path, f"has {len(buffer)} bytes, not {size}")
    source_lengths, target_lengths, offsets, ids = (section.of(buffer) for section in sections)
    return Part(
        corpus=corpus, source_lengths=source_lengths, target_lengths=target_lengths, offsets=offsets, ids=ids
    )


def _damaged(path: Path, what: str) -> TandemError:
    return TandemError(f"The shard part {path} {what}: {_CURE}.")


def _lay_out(pairs: int, ids: int, id_bytes: int) -> tuple[list[_Section], int]:
    columns = (
        (_ID_TYPES[2], pairs),
        (_ID_TYPES[2], pairs),
        (_ID_TYPES[4], pairs),
        (_ID_TYPES[id_bytes], ids),
    )
    sections: list[_Section] = []
    end = _HEADER.size
    for dtype, size in columns:
        start = -(-end // _ALIGN) * _ALIGN
        sections.append(_Section(start, dtype, size))
        end = start + dtype.itemsize * size
    return sections, end


def _check(path: Path, *, source: Ragged, target: Ragged, vocabulary: int) -> None:
    if len(source) != len(target):
        raise ValueError(f"{path}: {len(source)} source sentences, {len(target)} target sentences")
    longest = max(int(side.lengths.max(initial=0)) for side in (source, target))
    if longest > MAX_PIECES:
        raise TandemError(
            f"A sentence has {longest} pieces, but a shard holds {MAX_PIECES}: take that line out of the text."
        )
    if len(source.ids) + len(target.ids) > _MAX_IDS:
        raise ValueError(f"{path}: more than {_MAX_IDS} ids in one part")
    for side in (source, target):
        if side.ids.max(initial=0) >= vocabulary or side.ids.min(initial=0) < 0:
            raise ValueError(f"{path}: an id lies outside the vocabulary of {vocabulary}")


def _build_facts(path: Path, *, digest: str, part: Part) -> ShardFacts:
    return ShardFacts(
        name=path.name,
        bytes=path.stat().st_size,
        sha256=digest,
        corpus=part.corpus,
        pairs=len(part.source_lengths),
        longest_source=int(part.source_lengths.max(initial=0)) + 1,
        longest_target=int(part.target_lengths.max(initial=0)) + 1,
        source_tokens=_sum_blocks(part.source_lengths),
        target_tokens=_sum_blocks(part.target_lengths),
    )


def _sum_blocks(lengths: NDArray[np.uint16]) -> NDArray[np.int64]:
    starts = np.arange(0, len(lengths), BLOCK_PAIRS)
    return np.add.reduceat(lengths.astype(np.int64) + 1, starts) if len(lengths) else starts
