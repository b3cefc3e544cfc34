"""A whole shard set: opened without touching its parts, read through memory maps that processes share."""

import os
import resource
import weakref
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tandem.artefact import read_manifest, settle
from tandem.data.shards.index import Blocks, read_index
from tandem.data.shards.part import BLOCK_PAIRS, Part, id_type, open_part, part_name
from tandem.data.shards.ragged import Ragged, build_spans
from tandem.data.shards.special import SpecialIds
from tandem.errors import TandemError

__all__ = ["SHARDS_KIND", "SHARDS_VERSION", "ShardSet", "open_shards"]

SHARDS_KIND = "shards"
SHARDS_VERSION = 1

_MOST_MAPS = 16_384


class ShardSet:
    """Encoded pairs, numbered from 0 through all parts. Parts are mapped read-only when first needed.

    It never reads the parts of another set that has taken its place: a part that is gone is a TandemError.
    """

    def __init__(self, opened: "_OpenFolder", *, blocks: Blocks, facts: Mapping[str, Any]) -> None:
        self.folder = opened.path
        self.blocks = blocks
        self.corpora = tuple(str(name) for name in facts["corpora"])
        """Names; how often each is read is the plan's business, so that a new weight makes no shard stale."""
        self.special = SpecialIds.from_facts(facts["special"])
        self.vocabulary = int(facts["vocabulary"])
        self.longest_source = int(facts["longest_source"])
        self.longest_target = int(facts["longest_target"])
        self._first_block = np.searchsorted(blocks.part, np.arange(int(facts["parts"])))
        self._first_pair = blocks.first_pair[self._first_block]
        # A map holds a file descriptor: a set may have more parts than a process may have open files.
        # Nothing in it refers back to this set, so that maps and folder are closed as soon as it is dropped.
        sizes = np.diff(self._first_pair, append=len(self))
        self._part = lru_cache(maxsize=_count_maps())(partial(_open_own, opened, sizes))

    def __len__(self) -> int:
        return int(self.blocks.first_pair[-1])

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ShardSet is not pickled: open the folder again in the other process")

    def lengths(self, blocks: NDArray[np.int64]) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        """Pieces (without end mark) of the source and target sentences of these blocks, block after block."""
        ends = np.cumsum(self.blocks.pairs[blocks], dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        source, target = np.empty(total, np.uint16), np.empty(total, np.uint16)
        numbers = self.blocks.part[blocks]
        starts = (blocks - self._first_block[numbers]) * BLOCK_PAIRS
        done = 0
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
            part, stop = self._part(number), start + end - done
            source[done:end] = part.source_lengths[start:stop]
            target[done:end] = part.target_lengths[start:stop]
            done = end
        return source, target

    def gather(self, pairs: NDArray[np.int64]) -> tuple[Ragged, Ragged]:
        """Pieces of the source and target sentences of these pairs, in the order asked for."""
        if len(pairs) and (pairs.min() < 0 or pairs.max() >= len(self)):
            raise IndexError(f"pairs are numbered 0 to {len(self) - 1}")
        # Empty parts begin where the next one does: "right" finds the last of them, which holds the pair.
        numbers = np.searchsorted(self._first_pair, pairs, side="right") - 1
        by_part = np.argsort(numbers, kind="stable")
        found, firsts = np.unique(numbers[by_part], return_index=True)
        stretches = (
            list(zip(found.tolist(), np.split(by_part, firsts[1:]), strict=True)) if len(pairs) else []
        )
        source, target, starts = (np.empty(len(pairs), np.int64) for _ in range(3))
        for number, chosen in stretches:
            part, local = self._part(number), pairs[chosen] - self._first_pair[number]
            source[chosen] = part.source_lengths[local]
            target[chosen] = part.target_lengths[local]
            starts[chosen] = part.offsets[local]
        return self._collect(stretches, starts=starts, source=source, target=target)

    def _collect(
        self,
        stretches: list[tuple[int, NDArray[np.int64]]],
        *,
        starts: NDArray[np.int64],
        source: NDArray[np.int64],
        target: NDArray[np.int64],
    ) -> tuple[Ragged, Ragged]:
        """Copy whole pairs part by part, then put the two sides in the order of the request."""
        both = source + target
        held: NDArray[np.unsignedinteger[Any]] = np.empty(int(both.sum()), id_type(self.vocabulary))
        places = np.empty(len(both), np.int64)
        done = 0
        for number, chosen in stretches:
            spans = build_spans(starts[chosen], both[chosen])
            held[done : done + len(spans)] = self._part(number).ids[spans]
            places[chosen] = done + np.cumsum(both[chosen]) - both[chosen]
            done += len(spans)
        return (
            Ragged(ids=held[build_spans(places, source)], lengths=source),
            Ragged(ids=held[build_spans(places + source, target)], lengths=target),
        )


def open_shards(folder: Path) -> ShardSet:
    """Open a finished shard set; reads its manifest and index only, whatever its size."""
    if not folder.exists():
        settle(folder)
    opened = _OpenFolder(folder)
    manifest = read_manifest(folder, kind=SHARDS_KIND, version=SHARDS_VERSION, sizes=False)
    blocks = read_index(folder)
    if not opened.is_in_place():
        raise opened.replaced()
    if blocks.first_pair[-1] != manifest.facts["pairs"]:
        raise TandemError(
            f"The index in {folder} does not match its manifest: run `tandem data prepare` again."
        )
    return ShardSet(opened, blocks=blocks, facts=manifest.facts)


class _OpenFolder:
    """A folder held by itself rather than by its name, which another may take."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            raise TandemError(
                f"There is no folder {path} with shards: run `tandem data prepare` again."
            ) from None
        weakref.finalize(self, os.close, self.descriptor)

    def is_in_place(self) -> bool:
        """Whether the folder still has its name."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def replaced(self) -> TandemError:
        """The error of a reader whose folder is gone."""
        return TandemError(
            f"The shards in {self.path} were made again while they were read: "
            "prepare the data that this run began with, and go on from its checkpoint."
        )


def _open_own(opened: _OpenFolder, sizes: NDArray[np.int64], number: int) -> Part:
    path = opened.path / part_name(number)
    try:
        part = open_part(path, folder=opened.descriptor)
    except TandemError:
        if opened.is_in_place():
            raise
        raise opened.replaced() from None
    if len(part.source_lengths) != sizes[number]:
        raise TandemError(
            f"The shard part {path} does not belong to its index: run `tandem data prepare` again."
        )
    return part


def _count_maps() -> int:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_MAPS if allowed == resource.RLIM_INFINITY else min(max(allowed // 2, 16), _MOST_MAPS)
