"""Reads a file of a run log in blocks of whole lines, also while it is being written."""

from collections.abc import Iterator
from pathlib import Path

__all__ = ["read_blocks"]

_LONGEST_LINE = 1 << 24


def read_blocks(path: Path, *, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, and how many lines were passed over because no record is that long.

    What follows the last line feed is not there yet, and is left out.
    """
    with path.open("rb") as file:
        while data := file.read(size):
            # To the end of the line at hand, so that nothing is kept for the next block.
            tail = b"" if data.endswith(b"\n") else file.readline(_LONGEST_LINE)
            is_long = len(tail) == _LONGEST_LINE and not tail.endswith(b"\n")
            block = data + tail if tail.endswith(b"\n") else data[: data.rfind(b"\n") + 1]
            yield block, int(is_long)
            while is_long and (tail := file.readline(_LONGEST_LINE)):
                is_long = not tail.endswith(b"\n")
