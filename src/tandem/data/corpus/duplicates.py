"""Exact duplicates over a whole corpus, found from hashes in memory that does not grow with it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tandem.data.corpus.clean import KEY_BYTES
from tandem.progress import SILENT, Progress

__all__ = ["find_duplicates"]

KEYS_AT_ONCE = 1 << 19
"""Hashes sorted at once, at about 40 bytes each, while that takes no more than MOST_CLASSES readings of all hashes."""

MOST_CLASSES = 64


def find_duplicates(
    key_files: Sequence[Path], progress: Progress = SILENT
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield (number of a file, rows to drop): every pair whose hash stood in an earlier row or file.

    The hashes are dealt by remainder into as many classes as fit the memory, and the files read once for each class.
    What is found is kept as one bit a pair: 50 MB for 400 million.
    """
    counts = [path.stat().st_size // KEY_BYTES for path in key_files]
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    total = int(starts[-1])
    classes = min(max(1, -(-total // KEYS_AT_ONCE)), MOST_CLASSES)
    bits = np.zeros(total // 8 + 1, np.uint8)
    with progress.bar("finding duplicates", total=classes * len(key_files)) as bar:
        for remainder in range(classes):
            keys, rows = _keys_of_class(_read_keys(key_files, bar.advance), starts, classes, remainder)
            found = _repeated(keys, rows)
            np.bitwise_or.at(bits, found >> 3, np.left_shift(1, found & 7).astype(np.uint8))
    for file, (start, stop) in enumerate(pairwise(starts.tolist())):
        spread = np.unpackbits(bits[start >> 3 : (stop >> 3) + 1], bitorder="little")
        rows = np.flatnonzero(spread[start & 7 : (start & 7) + stop - start])
        if len(rows):
            yield file, rows


def _read_keys(key_files: Sequence[Path], advance: Callable[[int], None]) -> Iterator[NDArray[np.uint64]]:
    for path in key_files:
        yield np.fromfile(path, dtype="<u8")
        advance(1)


def _keys_of_class(
    files: Iterator[NDArray[np.uint64]], starts: NDArray[np.int64], classes: int, remainder: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    keys: list[NDArray[np.uint64]] = []
    rows: list[NDArray[np.int64]] = []
    for start, of_file in zip(starts, files, strict=False):
        chosen = np.flatnonzero(of_file % np.uint64(classes) == remainder)
        keys.append(of_file[chosen])
        rows.append(chosen + start)
    return np.concatenate(keys), np.concatenate(rows)


def _repeated(keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    repeated: NDArray[np.int64] = rows[order[1:][ordered[1:] == ordered[:-1]]]
    return repeated
