"""A folder with a manifest: built beside and renamed, with sizes, checksums, version and fingerprint."""

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from tandem.errors import TandemError
from tandem.files import (
    explaining_full_disk,
    keep_plain,
    make_folder,
    open_regular,
    parse_json,
    read_bounded,
    refuse_link,
    remove_tree,
    require_filled,
    walk,
)
from tandem.lock import BusyError, beside, locked, read_note
from tandem.progress import SILENT, Progress

__all__ = [
    "MANIFEST",
    "Build",
    "FileEntry",
    "JsonValue",
    "Manifest",
    "building",
    "fingerprint",
    "is_name",
    "maybe_fresh",
    "maybe_partial",
    "parse_manifest",
    "read_manifest",
    "read_raw_manifest",
    "replacing",
    "settle",
    "sha256_file",
    "verify",
    "write_atomic",
]

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"

MANIFEST = "manifest.json"
"""The file that makes a folder an artefact."""
_SCRATCH = ".tmp"
_AGAIN = "make the folder again, or copy it again"
_SHELL = re.compile(rb'\{"sha256": "([0-9a-f]{64})", "tandem": (\{.*\})\}\n', re.DOTALL)
_OURS = b'{"sha256": "'
_SEGMENT = r"(?!\.{1,2}(?:/|$))[^/\\\x00-\x1f\x7f]+"
_IDENTITY = {"kind": str, "version": int, "fingerprint": str, "facts": dict}
_MOST_SIZE = 1 << 62
_NAME = re.compile(f"{_SEGMENT}(?:/{_SEGMENT})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """What a file of an artefact must be."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a finished folder holds; no times in it, so that the same input gives the same bytes."""

    kind: str
    version: int
    fingerprint: str
    """Of everything that the content depends on: another fingerprint means that the folder is stale."""
    facts: Mapping[str, JsonValue]
    files: Mapping[str, FileEntry]
    """By relative POSIX name."""


@dataclass(slots=True, kw_only=True)
class Build:
    """A folder in the making: write into `path`, then set `facts`. Files named `*.tmp` are removed."""

    path: Path
    """Still holds what an interrupted build of the same kind, version and fingerprint had written."""
    facts: Mapping[str, JsonValue] | None = None
    entries: dict[str, FileEntry] = field(default_factory=dict)

    def known(self, name: str, *, bytes: int, sha256: str) -> None:  # noqa: A002
        """Hand over the checksum of a file that was hashed while it was written: it is not read again."""
        self.entries[name] = FileEntry(bytes=bytes, sha256=sha256)


def fingerprint(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON of `value`; ValueError on NaN and infinity, which JSON cannot hold."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_file(path: Path, *, links: bool = False) -> str:
    """SHA-256 of a plain file's bytes, in hex; a name that the user gave may be a link."""
    with open_regular(path, links=links) as file:
        require_filled(path, file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and else leaves nothing."""
    # By chance too: on a disk of several hosts the same number means several processes.
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{_SCRATCH}")
    with explaining_full_disk(path):
        try:
            with scratch.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old bytes or the new ones and nothing between."""
    with replacing(path) as file:
        file.write(data)


def read_manifest(folder: Path, *, kind: str, version: int, sizes: bool = True) -> Manifest:
    """Read the manifest of a finished folder; `sizes` also checks that each file is there and complete."""
    if not os.path.exists(folder):  # noqa: PTH110 - Path.exists raises where a link leads to itself
        settle(folder)
    # Not resolve(), for the same reason.
    folder = Path(os.path.realpath(folder))
    manifest = _read(folder)
    if manifest.kind != kind:
        raise TandemError(f"{folder} holds {manifest.kind}, not {kind}: check the path.")
    if manifest.version != version:
        cure = "use a newer Tandem" if manifest.version > version else "make it again"
        raise TandemError(f"{folder} has {kind} format {manifest.version}, not {version}: {cure}.")
    if sizes:
        _check_files(folder, manifest.files)
    return manifest


def read_raw_manifest(folder: Path) -> bytes:
    """The bytes of a folder's manifest, for `parse_manifest`."""
    return read_bounded(folder / MANIFEST)


def parse_manifest(raw: bytes, *, folder: Path) -> Manifest:
    """The manifest from the bytes of its file, which is, or shall be, in this folder."""
    shell = _SHELL.fullmatch(raw)
    if shell is None or hashlib.sha256(shell[2]).hexdigest().encode() != shell[1]:
        raise TandemError(f"{folder / MANIFEST} is damaged or was edited: {_AGAIN}.")
    try:
        held = parse_json(shell[2])
    except ValueError:
        raise _is_none(folder) from None
    return _parse(folder, held)


def is_name(text: str) -> bool:
    """Whether this is a relative name that stays inside the folder it is put behind."""
    return _NAME.fullmatch(text) is not None


def maybe_fresh(folder: Path, *, kind: str, version: int, fingerprint: str) -> Manifest | None:
    """The manifest if the folder is whole and has this fingerprint, None if it must be made (again)."""
    try:
        manifest = read_manifest(folder, kind=kind, version=version)
    except TandemError:
        return None
    return manifest if manifest.fingerprint == fingerprint else None


def maybe_partial(folder: Path, *, kind: str, version: int, fingerprint: str) -> Path | None:
    """Where an interrupted build of the same thing has left what it had written: the next one goes on with it."""
    folder = folder.resolve()
    partial = beside(folder, "partial")
    identity: dict[str, JsonValue] = {"kind": kind, "version": version, "fingerprint": fingerprint}
    return partial if partial.exists() and _is_of(folder, identity) else None


def verify(folder: Path, manifest: Manifest, progress: Progress = SILENT) -> None:
    """Compare every byte of the folder with its manifest; TandemError names the first file that differs."""
    _check_files(folder, manifest.files)
    for name in _list_files(folder):
        if name not in manifest.files and name != MANIFEST:
            raise TandemError(f"{folder / name} is not in the manifest of its folder: remove that file.")
    total = sum(entry.bytes for entry in manifest.files.values())
    with progress.bar(f"Checking {folder.name}", total=total, unit="B") as bar:
        for name, entry in manifest.files.items():
            if sha256_file(folder / name) != entry.sha256:
                raise TandemError(f"{folder / name} is damaged (its checksum differs): {_AGAIN}.")
            bar.advance(entry.bytes)


def settle(folder: Path) -> None:
    """Finish or undo a replacement that a crash cut short; does nothing while a builder is at work."""
    if folder.is_symlink():
        return  # what lies beside that which it leads to may be anybody's
    folder = Path(os.path.realpath(folder))
    if beside(folder, "old").exists():
        with suppress(BusyError), locked(folder):
            _settle(folder)


@contextmanager
def building(
    folder: Path,
    *,
    kind: str,
    version: int,
    fingerprint: str,
    progress: Progress = SILENT,
    links: bool = False,
) -> Iterator[Build]:
    """Build a folder beside its place, and put it there whole when the block ends well.

    `links` allows the folder to be a link, for names that the user typed.
    """
    if not links:
        refuse_link(folder)
    folder = folder.resolve()
    _refuse_foreign(folder, kind=kind)
    identity: dict[str, JsonValue] = {"kind": kind, "version": version, "fingerprint": fingerprint}
    with explaining_full_disk(folder), locked(folder) as lock:
        _settle(folder)
        build = Build(path=_open_partial(folder, lock, identity))
        yield build
        if build.facts is None:
            raise RuntimeError(f"the build of {folder} ended without facts")
        files = _describe_files(build, progress)
        _write_manifest(build.path, {**identity, "facts": dict(build.facts), "files": files})
        _swap(build.path, folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(folder: Path) -> Manifest:
    if not folder.is_dir():
        raise TandemError(f"There is no folder {folder}: check the path, or make the folder first.")
    try:
        raw = read_raw_manifest(folder)
    except FileNotFoundError:
        raise TandemError(f"{folder} has no {MANIFEST}, so it was not finished: {_AGAIN}.") from None
    return parse_manifest(raw, folder=folder)


def _parse(folder: Path, held: Any) -> Manifest:
    try:
        files = {name: FileEntry(**entry) for name, entry in held["files"].items()}
        identity = {name: held[name] for name in _IDENTITY}
    except (AttributeError, KeyError, TypeError):
        raise _is_none(folder) from None
    if any(type(identity[name]) is not kind for name, kind in _IDENTITY.items()):
        raise _is_none(folder)
    if not all(_is_entry(entry) for entry in files.values()):
        raise _is_none(folder)
    for name in files:
        if not _NAME.fullmatch(name) or name == MANIFEST:
            raise TandemError(f"{folder / MANIFEST} lists {name!r}, a name that is not allowed: {_AGAIN}.")
    return Manifest(files=files, **identity)


def _is_none(folder: Path) -> TandemError:
    return TandemError(f"{folder / MANIFEST} is not a manifest: {_AGAIN}.")


def _is_entry(entry: FileEntry) -> bool:
    return type(entry.bytes) is int and 0 <= entry.bytes < _MOST_SIZE and type(entry.sha256) is str


def _check_files(folder: Path, files: Mapping[str, FileEntry]) -> None:
    for parent in {name.rpartition("/")[0] for name in files}:
        if (folder / parent).resolve() != folder.resolve() / parent:
            raise TandemError(f"{folder / parent} is a link: put the folder itself there.")
    for name, entry in files.items():
        _check_size(f"{folder}/{name}", entry)


def _check_size(path: str, entry: FileEntry) -> None:
    try:
        found = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - building 12,000 Path objects doubles the time
    except (FileNotFoundError, NotADirectoryError):
        raise TandemError(f"{path} is missing: {_AGAIN}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise TandemError(f"{path} is not a plain file: put the file itself there, not a link.")
    if found.st_size != entry.bytes:
        raise TandemError(f"{path} has {found.st_size} bytes, not {entry.bytes}: {_AGAIN}.")


def _list_files(folder: Path) -> list[str]:
    """Relative POSIX names of all files, sorted; refuses links and other special files."""
    found = []
    for entry in walk(folder):
        if entry.is_file(follow_symlinks=False):
            found.append(Path(entry.path).relative_to(folder).as_posix())
        elif not entry.is_dir(follow_symlinks=False):
            raise TandemError(f"{entry.path} is not a plain file: put the file itself there, not a link.")
    return sorted(found)


def _refuse_foreign(folder: Path, *, kind: str) -> None:
    """Never replace a folder that Tandem did not make, or one that holds another kind of thing."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    manifest = folder / MANIFEST
    if not manifest.is_file() or not read_raw_manifest(folder).startswith(_OURS):
        raise TandemError(f"{folder} was not made by Tandem: name another folder, or move it away.")
    try:
        found = _read(folder).kind
    except TandemError:
        return  # ours and damaged: replacing it is the cure
    if found != kind:
        raise TandemError(f"{folder} holds {found}, not {kind}: name another folder, or move it away.")


def _open_partial(folder: Path, lock: int, identity: Mapping[str, JsonValue]) -> Path:
    partial = beside(folder, "partial")
    if partial.exists() and not _is_of(folder, identity):
        os.truncate(lock, 0)
        remove_tree(partial)
    os.pwrite(lock, json.dumps({"pid": os.getpid(), **identity}).encode() + b"\n", 0)
    make_folder(partial)
    keep_plain(partial)
    (partial / MANIFEST).unlink(missing_ok=True)
    return partial


def _is_of(folder: Path, identity: Mapping[str, JsonValue]) -> bool:
    """Whether what lies beside the folder is of a build with this identity."""
    return {**read_note(beside(folder, "lock")), "pid": 0} == {**identity, "pid": 0}


def _describe_files(build: Build, progress: Progress) -> dict[str, JsonValue]:
    described: dict[str, JsonValue] = {}
    names = _list_files(build.path)
    with progress.bar(f"Checksums of {build.path.stem}", total=len(names), unit="files") as bar:
        for name in sorted({*names, *build.entries}):
            path = build.path / name
            if name.endswith(_SCRATCH):
                path.unlink()
                continue
            entry = build.entries.get(name) or FileEntry(bytes=path.stat().st_size, sha256=sha256_file(path))
            _check_size(str(path), entry)
            _sync(path)
            described[name] = {"bytes": entry.bytes, "sha256": entry.sha256}
            bar.advance(1)
    for where in (
        build.path,
        *(Path(each.path) for each in walk(build.path) if each.is_dir(follow_symlinks=False)),
    ):
        _sync(where)
    return described


def _write_manifest(folder: Path, held: Mapping[str, JsonValue]) -> None:
    _parse(folder, held)
    body = json.dumps(held, indent=1, sort_keys=True, allow_nan=False).encode()
    digest = hashlib.sha256(body).hexdigest().encode()
    write_atomic(folder / MANIFEST, _OURS + digest + b'", "tandem": ' + body + b"}\n")


def _settle(folder: Path) -> None:
    old = beside(folder, "old")
    if old.exists() and folder.exists():
        remove_tree(old)
    elif old.exists():
        old.rename(folder)


def _swap(partial: Path, folder: Path) -> None:
    if folder.exists():
        folder.rename(beside(folder, "old"))
    partial.rename(folder)
    _sync(folder.parent)
    _settle(folder)
