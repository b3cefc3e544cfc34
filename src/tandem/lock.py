"""A lock on a folder, kept beside it: it dies with its holder, and says who that is."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tandem.errors import TandemError

__all__ = ["BusyError", "beside", "holding", "locked", "read_note"]

# Locks of this process: a forked worker that outlives a killed builder must not keep the folder locked.
_held: set[int] = set()


def _forget_locks() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_locks)


def beside(folder: Path, suffix: str) -> Path:
    """A name next to the folder, for what belongs to it but must not be in it."""
    return folder.parent / f"{folder.name}.{suffix}"


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Keep other processes from holding the same folder: for work that makes several artefacts in it."""
    folder = folder.resolve()
    with locked(folder) as lock:
        os.truncate(lock, 0)
        os.pwrite(lock, json.dumps({"pid": os.getpid()}).encode() + b"\n", 0)
        yield


class BusyError(TandemError):
    """Another process builds this folder."""


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold the lock of a folder inside the block; gives its descriptor, to write a note into."""
    path = beside(folder, "lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = _acquire(path)
    except BlockingIOError:
        pid = read_note(path).get("pid", "unknown")
        raise BusyError(f"{folder} is being made by process {pid}: wait for it, or stop it.") from None
    except OSError as error:
        raise TandemError(
            f"Cannot write in {folder.parent}: {error.strerror}; use another folder."
        ) from error
    _held.add(lock)
    try:
        yield lock
    finally:
        # A forked child no longer holds it; an interrupted build leaves its note for the one that resumes.
        if lock in _held:
            if not beside(folder, "partial").exists():
                path.unlink(missing_ok=True)
            _held.discard(lock)
            os.close(lock)


def _acquire(path: Path) -> int:
    """Open and lock the file; raises BlockingIOError when another process has it."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        except FileNotFoundError:
            pass  # the holder before us removed the file as it let go: this lock would lock nothing
        except OSError:
            os.close(lock)
            raise
        os.close(lock)


def read_note(path: Path) -> dict[str, Any]:
    """What the builder that holds, or last held, the lock wrote into it."""
    note: dict[str, Any] = {}
    with suppress(FileNotFoundError, ValueError):
        note = json.loads(path.read_bytes().partition(b"\n")[0])
    return note
