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
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from tandem.errors import TandemError

__all__ = [
    "MOST_BYTES",
    "UnfitFileError",
    "data_end",
    "explaining_full_disk",
    "hole_bytes",
    "keep_plain",
    "make_folder",
    "next_data",
    "open_append",
    "open_new",
    "open_regular",
    "parse_json",
    "read_bounded",
    "read_json",
    "refuse_link",
    "remove_tree",
    "require_filled",
    "require_plain",
    "require_regular",
    "tree_bytes",
    "walk",
]

MOST_BYTES = 1 << 28
"""No file that is read whole is larger: manifests, states, subword models, texts."""
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW
_DEEPEST = 100
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_HOLES = 10_000
_MOST_HOLE_BYTES = 1 << 34


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


def require_filled(path: Path, descriptor: int) -> None:
    """Raise UnfitFileError where this open file is little but holes: reading it is work that cost its maker none."""
    # Some disks keep zeros as holes.
    if (holes := hole_bytes(descriptor)) > _MOST_HOLE_BYTES:
        raise UnfitFileError(f"{path} has holes of {holes:,} bytes: copy it again.")


def refuse_link(folder: Path) -> None:
    """Raise UnfitFileError where this folder is a link."""
    if folder.is_symlink():
        raise UnfitFileError(f"{folder} is a link: put the folder itself there.")


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


def data_end(descriptor: int) -> int:
    """Where an open file has its last bytes that are not in a hole, as far as its disk tells soon."""
    stretches = _stretches(descriptor)
    return stretches[-1][1] if stretches else 0


def hole_bytes(descriptor: int) -> int:
    """How many bytes of an open file take no room on its disk, as far as that tells soon."""
    return os.fstat(descriptor).st_size - sum(end - begin for begin, end in _stretches(descriptor))


def _stretches(descriptor: int) -> list[tuple[int, int]]:
    """From where to where an open file is not a hole; the rest in one where there are very many, or no one knows."""
    size, before = os.fstat(descriptor).st_size, os.lseek(descriptor, 0, os.SEEK_CUR)
    found: list[tuple[int, int]] = []
    end = 0
    try:
        while end < size and len(found) < _MOST_HOLES:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = min(size, os.lseek(descriptor, begin, os.SEEK_HOLE))
            found.append((begin, end))
    except (OSError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            return found  # nothing but a hole up to the end
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)
    return [*found, (end, size)] if end < size else found


@contextmanager
def explaining_full_disk(path: Path) -> Iterator[None]:
    """Turn "no space left" inside the block into a TandemError that names `path`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise TandemError(f"Cannot write {path}: {error.strerror}; make room and try again.") from error


def make_folder(folder: Path, *, parents: bool = False, below: Path | None = None) -> None:
    """Make a folder to write into, where there is none; UnfitFileError where it is a link.

    `below` also makes the folders between that one and this, and refuses links among them.
    """
    if below is not None:
        below.mkdir(parents=parents, exist_ok=True)
        for name in folder.relative_to(below).parts:
            below /= name
            make_folder(below)
        return
    refuse_link(folder)
    folder.mkdir(parents=parents, exist_ok=True)


@contextmanager
def open_append(path: Path, *, below: Path | None = None) -> Iterator[BinaryIO]:
    """Open a plain file to write at its end, and make it where there is none; links are refused, `below` too."""
    with _open_to_write(path, os.O_APPEND, below) as file:
        yield file


@contextmanager
def open_new(path: Path, *, below: Path | None = None) -> Iterator[BinaryIO]:
    """Make a file to write; FileExistsError where something has its name, a link that leads nowhere too."""
    with _open_to_write(path, os.O_EXCL, below) as file:
        yield file


def walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All that lies below a folder, a folder before what it holds, however deep; what goes away meanwhile is left out.

    Links are told of and not followed. Python's own walks call themselves for each level, and fail in a thousand.
    """
    waiting = [str(folder)]
    while waiting:
        inside = _entries(waiting.pop())
        waiting += [entry.path for entry in inside if entry.is_dir(follow_symlinks=False)]
        yield from inside


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def tree_bytes(folder: Path) -> int:
    """Bytes of all files below; links are not followed, and what goes away meanwhile does not count."""
    whole = 0
    for entry in walk(folder):
        with suppress(OSError):
            whole += 0 if entry.is_dir(follow_symlinks=False) else entry.stat(follow_symlinks=False).st_size
    return whole


def keep_plain(folder: Path) -> None:
    """Remove what is neither a plain file nor a folder: a link in a folder that is written to would lead elsewhere."""
    for entry in walk(folder):
        if not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
            Path(entry.path).unlink()


def remove_tree(folder: Path, *, ignore_errors: bool = False) -> None:
    """Delete a folder with all that it holds; OSError for what the disk keeps, and for what is too deep to be ours."""
    try:
        shutil.rmtree(folder, ignore_errors=ignore_errors)
    except RecursionError:
        if ignore_errors:
            return
        raise UnfitFileError(f"{folder} has folders that lie too deep: remove it yourself.") from None


def _open_to_write(path: Path, how: int, below: Path | None) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
    descriptor = _open(path, flags | how, below)
    try:
        require_plain(path, descriptor)
        return os.fdopen(descriptor, "wb")
    except BaseException:
        os.close(descriptor)
        raise


def _open(path: Path, flags: int, below: Path | None) -> int:
    try:
        if below is None:
            return os.open(path, flags, 0o666)
        return _open_below(below, path.relative_to(below).parts, flags)
    except OSError as error:
        if isinstance(error, FileExistsError):
            raise
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
