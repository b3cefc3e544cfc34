"""Locks beside a folder, for its maker and for its readers: they die with their holders, and say who they are."""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from tandem.errors import TandemError
from tandem.files import UnfitFileError, parse_json, read_bounded, require_plain

__all__ = [
    "BusyError",
    "InUseError",
    "beside",
    "holding",
    "is_held",
    "locked",
    "read_note",
    "unused",
    "using",
]

_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A link would have what it points to locked, and written to; a pipe would be waited for."""
_MOST_BYTES = 1 << 20
_NOTE = b'{"pid": '
"""How a note in a lock begins; a lock without one is empty."""

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


def is_held(folder: Path) -> bool:
    """Whether another process holds the folder now, as far as this machine can tell; changes nothing."""
    try:
        lock = os.open(beside(folder.resolve(), "lock"), os.O_RDONLY | _PLAIN)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


class BusyError(TandemError):
    """Another process builds this folder."""


class InUseError(TandemError):
    """Other processes read this folder, and it must not change under them."""


@contextmanager
def using(folder: Path) -> Iterator[None]:
    """Keep a folder from being changed while the block reads it; any number of processes may at once.

    Where no lock can be kept, as on a read-only disk, the block runs without one.
    """
    folder = folder.resolve()
    lock = None
    try:
        lock = _acquire(beside(folder, "users"), os.O_RDONLY, fcntl.LOCK_SH)
    except BlockingIOError:
        raise _busy(folder) from None
    except OSError:
        pass
    # The file stays when the last user goes: it locks nothing by itself, and another may be opening it.
    with nullcontext() if lock is None else _kept(lock):
        yield


@contextmanager
def unused(folder: Path) -> Iterator[None]:
    """Change a folder inside the block, which nobody is `using`; InUseError where somebody is."""
    folder = folder.resolve()
    path = beside(folder, "users")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = _acquire(path, os.O_RDWR, fcntl.LOCK_EX)
    except BlockingIOError:
        raise InUseError(
            f"{folder} is in use by {_name_users(path)}: wait until that run ends, "
            "or give data.folder another place."
        ) from None
    except OSError as error:
        raise _unwritable(folder, error) from error
    with _kept(lock, path):
        yield


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold the lock of a folder inside the block; gives its descriptor, to write a note into."""
    path = beside(folder, "lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = _acquire(path, os.O_RDWR, fcntl.LOCK_EX)
    except BlockingIOError:
        raise _busy(folder) from None
    except OSError as error:
        raise _unwritable(folder, error) from error
    # An interrupted build leaves its note for the one that resumes.
    with _kept(lock, path, unless=beside(folder, "partial")):
        yield lock


def _busy(folder: Path) -> BusyError:
    pid = read_note(beside(folder, "lock")).get("pid", "unknown")
    return BusyError(f"{folder} is being made by process {pid}: wait for it, or stop it.")


def _unwritable(folder: Path, error: OSError) -> TandemError:
    if error.errno == errno.ELOOP:
        return TandemError(f"A lock beside {folder} is a link: remove it.")
    return TandemError(f"Cannot write in {folder.parent}: {error.strerror}; use another folder.")


def _acquire(path: Path, access: int, kind: int) -> int:
    """Open and lock the file; raises BlockingIOError when another process has it."""
    while True:
        lock = os.open(path, access | os.O_CREAT | _PLAIN, 0o666)
        try:
            require_plain(path, lock)
            _require_ours(path, lock)
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        except FileNotFoundError:
            pass  # the holder before us removed the file as it let go: this lock would lock nothing
        except OSError:
            os.close(lock)
            raise
        os.close(lock)


def _require_ours(path: Path, lock: int) -> None:
    """Raise where the file has what no lock has: a link may make a stranger's folder lie beside anybody's files."""
    head = os.pread(lock, len(_NOTE), 0)
    if not _NOTE.startswith(head):
        raise UnfitFileError(f"{path} is no lock of Tandem's: move it away.")


@contextmanager
def _kept(lock: int, path: Path | None = None, *, unless: Path | None = None) -> Iterator[None]:
    """Let go of a lock when the block ends, and remove its file, if named, `unless` that other one exists."""
    _held.add(lock)
    try:
        yield
    finally:
        # A forked child no longer holds it.
        if lock in _held:
            if path is not None and (unless is None or not unless.exists()):
                path.unlink(missing_ok=True)
            _held.discard(lock)
            os.close(lock)


def _name_users(path: Path) -> str:
    """Who shares the lock, where the system tells."""
    pids: set[int] = set()
    with suppress(OSError):
        # By the file's number alone: some disks show another device here than in its status.
        mark = f":{path.stat().st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[3] == "READ" and fields[5].endswith(mark):
                pids.add(int(fields[4]))
    # 0 and less: a process of another container or host, whose number says nothing here.
    known = [str(pid) for pid in sorted(pids) if pid > 0]
    if not known:
        return "another process"
    return f"process{'es' if len(known) > 1 else ''} {', '.join(known)}"


def read_note(path: Path) -> dict[str, Any]:
    """What the builder that holds, or last held, the lock wrote into it."""
    note: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        held = parse_json(read_bounded(path, _MOST_BYTES).partition(b"\n")[0])
        note = held if isinstance(held, dict) else {}
    return note
