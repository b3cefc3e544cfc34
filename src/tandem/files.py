"""Opening files and folders that a stranger may have put there: plain ones only, and never through a link.

A run, a model, a checkpoint or prepared data may come from anybody. In such a folder a pipe would block whoever opens
it, a device would do something, and a link would make a reader show, or a writer change, what lies elsewhere. A link to
a file of the same folder is refused as well: Tandem makes none, it breaks when the folder is copied, and it can be
turned elsewhere between a check and its use. The folder that a user names may itself be reached by a link, and so may
the big folders `checkpoints` and `data` of a run, which people keep on other disks.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from tandem.errors import TandemError

__all__ = [
    "MOST_BYTES",
    "UnfitFileError",
    "make_folder",
    "next_data",
    "open_append",
    "open_regular",
    "parse_json",
    "read_bounded",
    "read_json",
    "require_plain",
    "require_regular",
]

MOST_BYTES = 1 << 28
"""No file that is read whole is larger: manifests, states, subword models, texts."""
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW
_DEEPEST = 100


class UnfitFileError(TandemError, OSError):
    """A file that is not what it must be; an OSError too, for readers that pass over what cannot be read."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.strerror = sentence.rstrip(".")


def open_regular(path: Path, *, below: Path | None = None, links: bool = False) -> BufferedReader:
    """Open a plain file for reading; never waits, and raises UnfitFileError for anything else.

    `below` also refuses links among the folders between that folder and the file; `links` allows the file to be one,
    which is for names that the user typed.
    """
    descriptor = _open(path, _READ | (0 if links else os.O_NOFOLLOW), below)
    try:
        require_plain(path, descriptor)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bounded(
    path: Path, most_bytes: int = MOST_BYTES, *, below: Path | None = None, links: bool = False
) -> bytes:
    """Read a whole plain file of at most so many bytes; see `open_regular`."""
    with open_regular(path, below=below, links=links) as file:
        # What the file says of its size is not asked: it may lie, and grow.
        held = file.read(most_bytes + 1)
    if len(held) > most_bytes:
        raise UnfitFileError(f"{path} has more than {most_bytes:,} bytes, too many for what it should hold.")
    return held


def parse_json(text: bytes | str) -> Any:
    """Parse JSON of a stranger; ValueError for whatever is none, or is nested too deeply."""
    try:
        held = json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    if not _is_flat_enough(held):
        raise ValueError("JSON that is nested too deeply")
    return held


def read_json(path: Path, *, links: bool = False) -> Any:
    """Read a plain file of JSON; ValueError for whatever is none."""
    return parse_json(read_bounded(path, links=links))


def require_regular(path: Path, *, links: bool = False) -> None:
    """Raise UnfitFileError unless this is a plain file: for libraries that open a file by its name."""
    open_regular(path, links=links).close()


def require_plain(path: Path, descriptor: int) -> None:
    """Raise UnfitFileError unless this open file is a plain one."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a plain file"
        raise UnfitFileError(f"{path} is {what}: put the file itself there, or remove it.")


def next_data(file: BinaryIO, offset: int) -> int:
    """The next place from `offset` on that is not in a hole, so that a huge empty file costs nothing to pass over."""
    descriptor = file.fileno()
    # Both before the look: a file that grows meanwhile is not passed over, and a buffered one knows where it was left.
    size, before = os.fstat(descriptor).st_size, os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except (OSError, AttributeError) as error:
        # Nothing but a hole up to the end; or a disk that does not know.
        is_hole = isinstance(error, OSError) and error.errno == errno.ENXIO
        return max(offset, size) if is_hole else offset
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


def make_folder(folder: Path, *, parents: bool = False) -> None:
    """Make a folder to write into, where there is none; UnfitFileError where it is a link."""
    if folder.is_symlink():
        raise UnfitFileError(f"{folder} is a link: put the folder itself there.")
    folder.mkdir(parents=parents, exist_ok=True)


@contextmanager
def open_append(path: Path) -> Iterator[BinaryIO]:
    """Open a plain file to write at its end, and make it where there is none; links are refused."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    with os.fdopen(_open(path, flags, None), "ab") as file:
        require_plain(path, file.fileno())
        yield file


def _open(path: Path, flags: int, below: Path | None) -> int:
    try:
        if below is None:
            return os.open(path, flags, 0o666)
        return _open_below(below, path.relative_to(below).parts, flags)
    except OSError as error:
        if path.is_symlink() and flags & os.O_NOFOLLOW:
            raise UnfitFileError(f"{path} is a link: put the file itself there.") from error
        if path.is_socket() or path.is_fifo():
            raise UnfitFileError(f"{path} is not a plain file: remove it.") from error
        raise


def _open_below(below: Path, names: tuple[str, ...], flags: int) -> int:
    """Open step by step, so that no link is followed even if it is put there meanwhile."""
    folder = os.open(below, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for at, name in enumerate(names[:-1], start=1):
            inner = _open_inner(folder, name, below.joinpath(*names[:at]))
            os.close(folder)
            folder = inner
        return os.open(names[-1], flags, 0o666, dir_fd=folder)
    finally:
        os.close(folder)


def _open_inner(folder: int, name: str, path: Path) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if path.is_symlink():
            raise UnfitFileError(f"{path} is a link: put the folder itself there.") from error
        raise


def _is_flat_enough(held: Any) -> bool:
    """Whether it is nested less deeply than whoever walks over it can go."""
    layer = [held]
    for _ in range(_DEEPEST):
        sections = [each for each in layer if isinstance(each, dict | list)]
        if not sections:
            return True
        layer = [inner for each in sections for inner in (each.values() if isinstance(each, dict) else each)]
    return False
