"""The receiving side of `tandem data push`, which ssh starts on the other host: python -m tandem.launch.receive."""

import hashlib
import io
import json
import os
import select
import shutil
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tandem.artefact import (
    MANIFEST,
    FileEntry,
    Manifest,
    building,
    is_name,
    maybe_partial,
    parse_manifest,
    replacing,
    settle,
)
from tandem.errors import TandemError
from tandem.files import walk
from tandem.launch.blocks import BLOCK_BYTES, BrokenOffError, read_blocks
from tandem.launch.channel import FarEnd, Message
from tandem.lock import BusyError, beside, holding, unused
from tandem.progress import Silent

__all__ = ["FORMAT", "main", "serve"]

FORMAT = 1
"""Of the talk between the two sides."""

_SILENCE_S = 30.0
_LOOK_S = 0.2
_BEAT_S = 5.0
_CHECK_BYTES = 4 * BLOCK_BYTES
_SPARE_BYTES = 1 << 20
_CARD = "card.json"

Send = Callable[[Message], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Artefact:
    """One of the folders that are offered."""

    name: str
    folder: Path
    raw: bytes
    manifest: Manifest

    @property
    def identity(self) -> dict[str, Any]:
        held = self.manifest
        return {"kind": held.kind, "version": held.version, "fingerprint": held.fingerprint}

    @property
    def has_manifest(self) -> bool:
        file = self.folder / MANIFEST
        return file.is_file() and file.read_bytes() == self.raw

    def is_whole(self, found: Mapping[str, Path]) -> bool:
        """Whether it is in its place, if `found` are the good files."""
        names = self.manifest.files
        return self.has_manifest and all(
            found.get(f"{self.name}/{name}") == self.folder / name for name in names
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """What the other side has."""

    target: Path
    artefacts: Sequence[_Artefact]
    loose: Mapping[str, FileEntry]
    """Files beside the artefacts, in the order in which they are to appear."""
    card: Sequence[int]
    """Number and time of the other side's card: the same on a disk that both sides see."""

    @property
    def is_shared(self) -> bool:
        with suppress(OSError):
            found = (self.target / _CARD).stat()
            return [found.st_ino, found.st_mtime_ns] == list(self.card)
        return False


def main() -> None:
    """Answer the other side over standard input and output until it is done or gone."""
    far = FarEnd()
    try:
        serve(io.BufferedReader(_Incoming(), buffer_size=1 << 18), far.send)
    except TandemError as error:
        far.send({"is": "failed", "why": str(error)})
        sys.exit(1)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        why = f"Cannot use{where}: {error.strerror or error}; check the path and your rights to it."
        far.send({"is": "failed", "why": why})
        sys.exit(1)
    except BrokenOffError:
        sys.exit("the connection broke off")


def serve(incoming: BinaryIO, send: Send) -> None:
    """Read what is offered, and compare with what is here or receive what is lacking here."""
    message = json.loads(incoming.readline() or b"{}")
    if message.get("version") != FORMAT:
        raise TandemError("This host has another version of Tandem: install the same one everywhere.")
    offer = _read_offer(message)
    if message["do"] == "compare" or offer.is_shared:
        state, file = _compare(offer)
        if message["do"] == "compare" or state == "same":
            send({"is": state, "file": file})
            return
    with ExitStack() as stack:
        _hold(offer.target, stack, incoming, send)
        # Not before: what another has begun does not look like ours yet.
        _refuse_foreign(offer)
        if not _receive(offer, incoming, stack, send):
            send({"is": "same", "file": ""})
            return
    send({"is": "done"})


class _Incoming(io.RawIOBase):
    """Standard input; ends when nothing comes for long: a cut link would keep us, and the lock, for hours."""

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0

    def readinto(self, buffer: Any) -> int:
        if not select.select([0], [], [], _SILENCE_S)[0]:
            raise BrokenOffError
        return os.readv(0, [buffer])


class _Beats(Silent):
    """Signs of life, without which the other side gives us up.

    They come with the work and from no thread of their own: where a disk hangs they must end.
    """

    def __init__(self, send: Send) -> None:
        self._send, self._sent_s = send, time.monotonic()

    def advance(self, amount: int) -> None:  # noqa: ARG002  (the interface's)
        now_s = time.monotonic()
        if now_s - self._sent_s >= _BEAT_S:
            self._sent_s = now_s
            self._send({})  # which says nothing, and is passed over there


def _read_offer(message: Message) -> _Offer:
    target = Path(message["folder"]).expanduser().resolve()
    artefacts = []
    for name, text in message["artefacts"].items():
        folder = _inside(target, name)
        raw = text.encode()
        artefacts.append(
            _Artefact(name=name, folder=folder, raw=raw, manifest=parse_manifest(raw, folder=folder))
        )
    loose = {name: FileEntry(**entry) for name, entry in message["loose"].items()}
    for name in loose:
        _inside(target, name)
    return _Offer(target=target, artefacts=artefacts, loose=loose, card=message["card"])


def _inside(target: Path, name: str) -> Path:
    """The place of a name in the folder; refuses a name, or a link there, that leads out of it."""
    if not is_name(name):
        raise TandemError(f"{name!r} is not allowed as a name in {target}: it must stay inside that folder.")
    path = target / name
    if path.resolve() != path:
        raise TandemError(f"{path} is a link, or behind one: put the folder itself there.")
    return path


def _refuse_foreign(offer: _Offer) -> None:
    """Never fill a folder with something else in it; each artefact looks at its own folder besides."""
    target = offer.target
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    marks = [artefact.folder / MANIFEST for artefact in offer.artefacts]
    marks += [beside(artefact.folder, end) for artefact in offer.artefacts for end in ("partial", "old")]
    if not any(mark.exists() for mark in marks):
        raise TandemError(
            f"{target} was not made by Tandem: move it away, or give data.folder another place."
        )


def _compare(offer: _Offer) -> tuple[str, str]:
    """Whether the data here is the same, by manifests and sizes, and which file is not."""
    lacking = [str(offer.target / name) for name in offer.loose if not (offer.target / name).is_file()]
    for artefact in offer.artefacts:
        settle(artefact.folder)
        manifest = artefact.folder / MANIFEST
        if not manifest.is_file():
            lacking.append(str(manifest))
        elif not artefact.has_manifest:
            return "different", str(manifest)
        elif odd := [
            name
            for name, entry in artefact.manifest.files.items()
            if not _is_plain(artefact.folder / name, entry.bytes)
        ]:
            return "different", str(artefact.folder / odd[0])
    return ("missing", lacking[0]) if lacking else ("same", "")


def _hold(target: Path, stack: ExitStack, incoming: BinaryIO, send: Send) -> None:
    """Hold the folder; where another has it, perhaps for a host with the same disk, wait while we are waited for."""
    told, beats = False, _Beats(send)
    while True:
        try:
            stack.enter_context(holding(target))
        except BusyError as error:
            if not told:
                send({"is": "waiting", "why": str(error)})
            told = True
            beats.advance(1)
            # The other side says nothing before it has our answer: all there can be to read is its end.
            if select.select([incoming], [], [], _LOOK_S)[0]:
                raise BrokenOffError from None
        else:
            return


def _receive(offer: _Offer, incoming: BinaryIO, stack: ExitStack, send: Send) -> bool:
    """Receive what is lacking; False if nothing is."""
    found = _find(offer, send)
    stale = [artefact for artefact in offer.artefacts if not artefact.is_whole(found)]
    loose = [name for name in offer.loose if name not in found]
    if not stale and not loose:
        return False
    replaced = [artefact.name for artefact in stale if (artefact.folder / MANIFEST).exists()]
    if stale:
        stack.enter_context(unused(offer.target))
        # A folder with a card is a finished one.
        loose = [*(name for name in loose if name != _CARD), _CARD]
    wants = {f"{each.name}/{name}": entry for each in stale for name, entry in each.manifest.files.items()}
    wants = {name: entry for name, entry in wants.items() if name not in found}
    wants |= {name: offer.loose[name] for name in loose}
    _check_room(offer.target, sum(entry.bytes for entry in wants.values()))
    if stale:
        (offer.target / _CARD).unlink(missing_ok=True)
    send({"is": "wants", "files": list(wants), "replaced": replaced})
    beats = _Beats(send)
    for artefact in stale:
        _receive_artefact(artefact, found, incoming, beats)
    for name in loose:
        _receive_file(incoming, offer.target / name, beats, name=name, entry=offer.loose[name])
    return True


def _find(offer: _Offer, send: Send) -> dict[str, Path]:
    """Where each file lies already, every byte looked at: in its place, or as what a broken push has left."""
    places = [(name, offer.target / name, entry) for name, entry in offer.loose.items()]
    for artefact in offer.artefacts:
        settle(artefact.folder)
        partial = maybe_partial(artefact.folder, **artefact.identity)
        for home in (artefact.folder, partial):
            files = {} if home is None else artefact.manifest.files
            places += [(f"{artefact.name}/{name}", Path(f"{home}/{name}"), files[name]) for name in files]
    places = [place for place in places if _is_plain(place[1], place[2].bytes)]
    found: dict[str, Path] = {}
    if total := sum(entry.bytes for _, _, entry in places):
        send({"is": "checking", "bytes": total})
    for name, path, entry in places:
        if name in found:
            send({"is": "checked", "bytes": entry.bytes})
        elif _check_file(path, send) == entry.sha256:
            found[name] = path
    return found


def _check_file(path: Path, send: Send) -> str:
    """The checksum of a file; the other side hears how far it is."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_CHECK_BYTES):
            digest.update(block)
            send({"is": "checked", "bytes": len(block)})
    return digest.hexdigest()


def _is_plain(path: Path, size: int) -> bool:
    """Whether this is a file of so many bytes, reached through no link."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size and path.parent.resolve() == path.parent


def _check_room(target: Path, needed: int) -> None:
    place = next(path for path in (target, *target.parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    if needed + _SPARE_BYTES > free:
        lacking = _size(needed + _SPARE_BYTES - free)
        raise TandemError(
            f"{target} needs {_size(needed)} and its disk has {_size(free)} free: make room for {lacking} more."
        )


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _receive_artefact(
    artefact: _Artefact, found: Mapping[str, Path], incoming: BinaryIO, beats: _Beats
) -> None:
    with building(artefact.folder, **artefact.identity, progress=beats) as build:
        _remove_others(build.path, artefact.manifest.files)
        for name, entry in artefact.manifest.files.items():
            full, path = f"{artefact.name}/{name}", build.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.resolve() != path.parent:
                raise TandemError(f"{path.parent} is a link: remove it.")
            if full not in found:
                _receive_file(incoming, path, beats, name=full, entry=entry)
            elif found[full] != path:
                _take(found[full], path)
                beats.advance(1)
            build.known(name, bytes=entry.bytes, sha256=entry.sha256)
        build.facts = artefact.manifest.facts


def _remove_others(partial: Path, names: Mapping[str, FileEntry]) -> None:
    """What a build that was interrupted here had written for itself does not belong to the copy."""
    for entry in walk(partial):
        path = Path(entry.path)
        if not entry.is_dir(follow_symlinks=False) and path.relative_to(partial).as_posix() not in names:
            path.unlink()


def _take(source: Path, path: Path) -> None:
    """Take a good file over from the folder that is to be replaced."""
    path.unlink(missing_ok=True)
    try:
        path.hardlink_to(source)
    except OSError:  # a disk without such links
        shutil.copyfile(source, path, follow_symlinks=False)


def _receive_file(incoming: BinaryIO, path: Path, beats: _Beats, *, name: str, entry: FileEntry) -> None:
    """Receive the next file, which is in its place when it is whole and right, and not before."""
    head = incoming.readline()
    if not head.endswith(b"\n"):
        raise BrokenOffError
    if json.loads(head) != {"name": name, "bytes": entry.bytes, "sha256": entry.sha256}:
        raise TandemError(f"Another file came than {name}: push again.")
    digest = hashlib.sha256()
    with replacing(path) as file:
        for block in read_blocks(incoming, total=entry.bytes):
            digest.update(block)
            file.write(block)
            beats.advance(len(block))
        if digest.hexdigest() != entry.sha256:
            raise TandemError(f"{path} was damaged on its way (its checksum differs): push again.")


if __name__ == "__main__":
    main()
