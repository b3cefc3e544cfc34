"""The disk of this machine: how much room a folder has, and how fast it is written."""

import errno
import math
import os
import tempfile
import time
from pathlib import Path

from tandem.launch.doctor.facts import Disk

__all__ = ["describe_disk"]

_PIECE = bytes(2**20)
_LONGEST_S = 4.0
_PART = 8
"""Of the free room, the part that may be used for a moment."""


def describe_disk(folder: Path, *, most_bytes: int) -> Disk:
    """Write up to so many bytes where `folder` is, or would be made; nothing stays behind, whatever happens."""
    place = next(each for each in (folder, *folder.parents) if each.is_dir())
    held = os.statvfs(place)
    free = held.f_bavail * held.f_frsize
    try:
        speed, problem = _write(place, min(most_bytes, free // _PART)), ""
    except OSError as error:
        speed, problem = math.nan, error.strerror or str(error)
    return Disk(folder=str(place), free_bytes=free, write_bytes_per_s=speed, problem=problem)


def _write(place: Path, most_bytes: int) -> float:
    if most_bytes < len(_PIECE) // 4:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    number, name = tempfile.mkstemp(prefix=".tandem-doctor-", dir=place)
    try:
        # A file without a name is gone with this process, however that ends.
        Path(name).unlink()
        begin, written = time.monotonic(), 0
        while written < most_bytes and time.monotonic() < begin + _LONGEST_S:
            written += os.write(number, _PIECE[: most_bytes - written])
        os.fsync(number)
        return written / (time.monotonic() - begin)
    finally:
        os.close(number)
