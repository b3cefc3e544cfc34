"""A whole shard set: opened without touching its parts, read through memory maps that processes share."""

import os
import resource
import weakref
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from tandem.artefact import read_manifest, settle
from tandem.data.shards.index import Blocks, read_index
from tandem.data.shards.part import BLOCK_PAIRS, Part, id_type, open_part, part_name
from tandem.data.shards.ragged import Ragged, build_spans, pick_ended
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
        held = self._hold(pairs)
        targets = held.starts + held.source
        return (
            Ragged(ids=held.ids[build_spans(held.starts, held.source)], lengths=held.source),
            Ragged(ids=held.ids[build_spans(targets, held.target)], lengths=held.target),
        )

    def gather_ended(self, pairs: NDArray[np.int64]) -> tuple[Ragged, Ragged]:
        """The same with an end mark behind each sentence, which its length counts."""
        held, end = self._hold(pairs), self.special.eos
        targets = held.starts + held.source
        return (
            pick_ended(held.ids, held.starts, held.source, end=end),
            pick_ended(held.ids, targets, held.target, end=end),
        )

    def _hold(self, pairs: NDArray[np.int64]) -> "_Held":
        """Copy whole pairs as they lie in the parts; where each came to lie is told in the order of the request."""
        by_place = pairs.argsort()
        pairs = pairs[by_place]
        if len(pairs) and (pairs[0] < 0 or pairs[-1] >= len(self)):
            raise IndexError(f"pairs are numbered 0 to {len(self) - 1}")
        # Empty parts begin where the next one does: "right" finds the last of them, which holds the pair.
        numbers = self._first_pair.searchsorted(pairs, side="right") - 1
        stretches = _cut(numbers)
        local = pairs - self._first_pair[numbers]
        source, target, starts = (np.empty(len(pairs), np.int64) for _ in range(3))
        for number, here in stretches:
            part, chosen = self._part(number), local[here]
            source[here] = part.source_lengths.take(chosen)
            target[here] = part.target_lengths.take(chosen)
            starts[here] = part.offsets.take(chosen)
        both = source + target
        spans = build_spans(starts, both)
        ends = both.cumsum()
        ids: NDArray[np.unsignedinteger[Any]] = np.empty(len(spans), id_type(self.vocabulary))
        done = 0
        for number, here in stretches:
            end = int(ends[here.stop - 1])
            ids[done:end] = self._part(number).ids.take(spans[done:end])
            done = end
        back = np.empty_like(by_place)
        back[by_place] = np.arange(len(by_place))
        return _Held(ids=ids, starts=(ends - both)[back], source=source[back], target=target[back])


class _Held(NamedTuple):
    """Pairs copied out of their parts."""

    ids: NDArray[np.unsignedinteger[Any]]
    starts: NDArray[np.int64]
    """Of each pair: its source pieces, then its target pieces."""
    source: NDArray[np.int64]
    """Pieces."""
    target: NDArray[np.int64]


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


def _cut(numbers: NDArray[np.int64]) -> list[tuple[int, slice]]:
    """Each number of a sorted list, and the stretch of the list that has it."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    bounds = pairwise([*starts.tolist(), len(numbers)])
    return [(number, slice(*ends)) for number, ends in zip(numbers[starts].tolist(), bounds, strict=True)]


def _count_maps() -> int:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_MAPS if allowed == resource.RLIM_INFINITY else min(max(allowed // 2, 16), _MOST_MAPS)
