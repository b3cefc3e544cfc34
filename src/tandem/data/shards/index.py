"""The table of blocks that makes a shard set known without opening its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.artefact import JsonValue, write_atomic
from tandem.data.shards.part import BLOCK_PAIRS, ShardFacts, part_name
from tandem.data.shards.special import SpecialIds
from tandem.errors import TandemError
from tandem.files import require_regular

__all__ = ["INDEX_NAME", "Blocks", "read_index", "write_index"]

INDEX_NAME = "index.npy"

_COLUMNS = ("part", "corpus", "pairs", "source_tokens", "target_tokens")
_DTYPE = np.dtype([(name, "<u4") for name in _COLUMNS])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """Columns, one row for each block of at most 1,024 consecutive pairs; tokens count end marks."""

    part: NDArray[np.uint32]
    corpus: NDArray[np.uint32]
    pairs: NDArray[np.uint32]
    source_tokens: NDArray[np.uint32]
    target_tokens: NDArray[np.uint32]
    first_pair: NDArray[np.int64]
    """Number of each block's first pair in the set, and at the end the number of pairs."""

    def __len__(self) -> int:
        return len(self.pairs)


def write_index(
    folder: Path,
    parts: Sequence[ShardFacts],
    *,
    corpora: Sequence[str],
    special: SpecialIds,
    vocabulary: int,
) -> dict[str, JsonValue]:
    """Write the table of blocks beside its parts, and return the facts for the folder's manifest."""
    _check(parts, corpora)
    table = np.concatenate(
        [_tabulate(number, part) for number, part in enumerate(parts)] or [np.zeros(0, _DTYPE)]
    )
    file = BytesIO()
    np.save(file, table, allow_pickle=False)
    write_atomic(folder / INDEX_NAME, file.getvalue())
    return {
        "parts": len(parts),
        "pairs": sum(part.pairs for part in parts),
        "source_tokens": int(table["source_tokens"].sum(dtype=np.int64)),
        "target_tokens": int(table["target_tokens"].sum(dtype=np.int64)),
        "longest_source": max((part.longest_source for part in parts), default=1),
        "longest_target": max((part.longest_target for part in parts), default=1),
        "vocabulary": vocabulary,
        "special": special.to_facts(),
        "corpora": list(corpora),
    }


def read_index(folder: Path) -> Blocks:
    """Read the table of blocks; a damaged one is a TandemError."""
    path = folder / INDEX_NAME
    try:
        require_regular(path)
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path) from error
    if table.dtype != _DTYPE or table.ndim != 1:
        raise _damaged(path)
    columns: dict[str, Any] = {name: np.ascontiguousarray(table[name]) for name in _COLUMNS}
    first_pair = np.zeros(len(table) + 1, np.int64)
    np.cumsum(columns["pairs"], out=first_pair[1:])
    return Blocks(**columns, first_pair=first_pair)


def _damaged(path: Path) -> TandemError:
    return TandemError(f"The shard index {path} is missing or damaged: run `tandem data prepare` again.")


def _check(parts: Sequence[ShardFacts], corpora: Sequence[str]) -> None:
    for number, part in enumerate(parts):
        if part.name != part_name(number) or part.corpus >= len(corpora):
            raise ValueError(f"part {number} is {part.name} of corpus {part.corpus}")


def _tabulate(number: int, part: ShardFacts) -> NDArray[Any]:
    table = np.zeros(len(part.source_tokens), _DTYPE)
    table["part"] = number
    table["corpus"] = part.corpus
    table["pairs"] = np.minimum(part.pairs - np.arange(len(table)) * BLOCK_PAIRS, BLOCK_PAIRS)
    table["source_tokens"] = part.source_tokens
    table["target_tokens"] = part.target_tokens
    return table
