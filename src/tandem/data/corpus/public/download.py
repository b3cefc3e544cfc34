"""Archives in the cache: downloaded with patience, checked, and never fetched twice."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tandem.artefact import sha256_file, write_atomic
from tandem.data.corpus.public.entry import Archive
from tandem.data.corpus.public.transfer import Cut, PartialFile, Unreachable, transfer
from tandem.errors import TandemError
from tandem.files import explaining_full_disk
from tandem.progress import SILENT, Progress

__all__ = ["Downloaded", "download", "find_cache"]

_ATTEMPTS = 6
_LONGEST_WAIT_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """An archive that lies whole in the cache."""

    url: str
    path: Path
    bytes: int
    sha256: str


def find_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where downloads are kept: $TANDEM_CACHE, else ~/.cache/tandem."""
    named = environment.get("TANDEM_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "tandem"


def download(
    archive: Archive, cache: Path, *, progress: Progress = SILENT, wait: Callable[[float], None] = time.sleep
) -> Downloaded:
    """Bring an archive into the cache, or check the one that is there; `wait` pauses between attempts."""
    path = _find_place(archive.url, cache)
    with explaining_full_disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path, archive.url):
            found = _maybe_cached(archive, path, progress)
            if found is None:
                partial = PartialFile(_beside(path, "part"))
                _receive(archive, partial, progress=progress, wait=wait)
                found = _accept(archive, path, partial)
            return found


def _find_place(url: str, cache: Path) -> Path:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise TandemError(f"{url} is not a web address: only http and https can be downloaded.")
    key = hashlib.sha256(url.encode()).hexdigest()[:12]
    name = "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in parts.path.rsplit("/", 1)[-1]
    )
    return cache / "archives" / f"{key}-{name[-80:]}"


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


@contextmanager
def _locked(path: Path, url: str) -> Iterator[None]:
    with _beside(path, "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TandemError(f"Another process is downloading {url}: wait for it, then run again.") from None
        yield


def _maybe_cached(archive: Archive, path: Path, progress: Progress) -> Downloaded | None:
    if not path.exists():
        return None
    sha256 = sha256_file(path)
    if sha256 == (archive.sha256 or _maybe_recorded(path)):
        return Downloaded(url=archive.url, path=path, bytes=path.stat().st_size, sha256=sha256)
    progress.say(f"{path} is damaged; downloading it again")
    path.unlink()
    return None


def _maybe_recorded(path: Path) -> str | None:
    """Checksum of the first download, which stays known when the archive itself is deleted."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(_beside(path, "json").read_bytes())["sha256"])
    return None


def _receive(
    archive: Archive, partial: PartialFile, *, progress: Progress, wait: Callable[[float], None]
) -> None:
    """Try until the file is whole; an attempt that brought something gives the next ones a fresh start."""
    failures, begun = 0, False
    while True:
        before = partial.size()
        try:
            return transfer(archive, partial, progress)
        except Cut as cut:
            grown = partial.size() > before
            begun |= grown
            failures = 1 if grown else failures + 1
            if failures >= _ATTEMPTS or (isinstance(cut, Unreachable) and not begun):
                raise TandemError(
                    f"{archive.url} cannot be downloaded ({cut}): check the network or the proxy and run "
                    f"the same command again; it goes on after {partial.size():,} bytes."
                ) from cut
            progress.say(f"{cut}; trying again")
            wait(min(_LONGEST_WAIT_S, 2**failures))


def _accept(archive: Archive, path: Path, partial: PartialFile) -> Downloaded:
    """Check what came against the known checksum, else that of the first download, and put it in place."""
    size, sha256 = partial.path.stat().st_size, sha256_file(partial.path)
    recorded = _maybe_recorded(path)
    expected = archive.sha256 or recorded or sha256
    if sha256 != expected:
        partial.clear()
        cure = "" if archive.sha256 else f", or delete {_beside(path, 'json')} to accept the new file"
        raise TandemError(
            f"{archive.url} is not the file expected: its sha256 is {sha256}, not {expected}; the transfer "
            f"was damaged, or its publisher has replaced it: try again{cure}."
        )
    record = {"bytes": size, "sha256": sha256, "url": archive.url}
    write_atomic(_beside(path, "json"), json.dumps(record, indent=1).encode() + b"\n")
    partial.path.replace(path)
    partial.clear()
    return Downloaded(url=archive.url, path=path, bytes=size, sha256=sha256)
