"""A tree that lies deeper than Python calls itself."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["DEPTH", "deep_below"]

DEPTH = 1_500


@contextmanager
def deep_below(folder: Path) -> Iterator[Path]:
    """So many folders in one another, with the innermost given; what is made and what is removed calls itself too."""
    begin = deep = folder / "a"
    for _ in range(DEPTH - 1):
        deep.mkdir()
        deep /= "a"
    deep.mkdir()
    try:
        yield deep
    finally:
        subprocess.run(["/bin/rm", "-rf", str(begin)], check=True)
