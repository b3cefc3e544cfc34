"""Sockets between processes of one user on this host: files in folders that nobody else may enter."""

import os
import socket
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tandem.errors import TandemError

__all__ = ["is_own_peer", "is_own_sender", "private_folder", "short_name"]

CREDENTIALS = struct.Struct("3i")
"""Process, user and group, as the kernel tells them."""
TEMPORARY = Path("/tmp")  # noqa: S108 - a folder of ours is made in it, and looked at before it is used
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """A folder that every process of this user on this host finds, and that nobody else may enter."""
    given = Path(environment.get("XDG_RUNTIME_DIR", ""))
    if given.is_absolute() and _is_private(given):
        return given
    # Not TMPDIR, which some launchers set for each process.
    folder = TEMPORARY / f"tandem-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error.strerror or "no reason given") from error
    if not _is_private(folder):
        raise _unusable(folder, "it is not a folder that is yours alone")
    return folder


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of the file that fits into the 107 letters of a socket's address, however deep its folder lies."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def is_own_peer(connection: socket.socket) -> bool:
    """Whether a process of this user is at the other end."""
    held = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return _is_own(held)


def is_own_sender(ancillary: Sequence[tuple[int, int, bytes]]) -> bool:
    """Whether a process of this user sent a datagram, by what came with it on a socket with SO_PASSCRED."""
    return any(
        (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and _is_own(held)
        for level, kind, held in ancillary
    )


def _is_own(credentials: bytes) -> bool:
    return len(credentials) == CREDENTIALS.size and CREDENTIALS.unpack(credentials)[1] == os.getuid()


def _is_private(folder: Path) -> bool:
    try:
        # Not through a link, which another may have laid.
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OTHERS


def _unusable(folder: Path, why: str) -> TandemError:
    return TandemError(
        f"Cannot use {folder} for the sockets of the ranks ({why}): remove it, or set XDG_RUNTIME_DIR to a folder "
        "of yours with mode 0700."
    )
