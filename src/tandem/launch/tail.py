"""What is new in the files of a run's log, and putting it to the files of another host's copy."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.files import make_folder, open_append, open_regular, read_json

__all__ = ["Collector", "Piece", "Tail"]

_KINDS = (".jsonl", ".txt")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}\.(?:jsonl|txt)")
"""Of a file that a host may have written to: no path, and no file of our own."""
_MOST_FILES = 10_000
_MOST_BYTES = 1 << 18
_SAVE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Whole lines that were appended to a file."""

    file: str
    offset: int
    """Where they end."""
    text: str


class Tail:
    """Reads what is appended to the files of a folder, from given places on."""

    def __init__(self, folder: Path, offsets: Mapping[str, int]) -> None:
        self._folder, self._offsets = folder, dict(offsets)

    def pieces(self) -> Iterator[Piece]:
        """What is new in each file, at most a bounded part of it; ask again for more."""
        paths = sorted(path for path in self._folder.glob("*") if path.suffix in _KINDS)
        for path in paths:
            with suppress(OSError), open_regular(path) as file:
                offset = self._offsets.get(path.name, 0)
                # A disk that was lost begins anew.
                offset = offset if offset <= os.fstat(file.fileno()).st_size else 0
                file.seek(offset)
                data = file.read(_MOST_BYTES)
                whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == _MOST_BYTES else b"")
                if whole:
                    self._offsets[path.name] = offset + len(whole)
                    yield Piece(
                        file=path.name,
                        offset=offset + len(whole),
                        text=whole.decode(errors="replace"),
                    )


class Collector:
    """Keeps a copy of the logs on other disks, and how much of each it has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[str, dict[str, int]] = {}
        self._saved_s = 0.0
        self._unsaved: set[str] = set()

    def offsets(self, disk: str) -> Mapping[str, int]:
        """How many bytes of each file on a disk are here."""
        if disk not in self._offsets:
            self._offsets[disk] = _read_offsets(self._place(disk))
        return self._offsets[disk]

    def take(self, disk: str, piece: Piece) -> None:
        """Append; a full disk must not end the run, and what it refuses is not asked for again."""
        offsets = self.offsets(disk)
        if not _NAME.fullmatch(piece.file) or (piece.file not in offsets and len(offsets) >= _MOST_FILES):
            return
        self._offsets[disk] = {**offsets, piece.file: piece.offset}
        self._unsaved.add(disk)
        with suppress(OSError):
            make_folder(self._folder, parents=True)
            with open_append(self._folder / piece.file) as file:
                file.write(piece.text.encode(errors="replace"))

    def save(self, *, at_once: bool = False) -> None:
        """Write down what is here, from time to time: after a crash, the lines since then come twice."""
        now_s = time.monotonic()
        if not at_once and now_s - self._saved_s < _SAVE_S:
            return
        self._saved_s = now_s
        for disk in self._unsaved:
            with suppress(OSError, TandemError):
                write_atomic(self._place(disk), json.dumps(self._offsets[disk]).encode())
        self._unsaved.clear()

    def _place(self, disk: str) -> Path:
        # A name that a host gave is no path.
        return self._folder / f".from-{re.sub('[^A-Za-z0-9.-]', '_', disk)}.json"


def _read_offsets(path: Path) -> dict[str, int]:
    try:
        held = read_json(path)
    except (OSError, ValueError):
        return {}
    offsets = held if isinstance(held, dict) else {}
    return {name: offset for name, offset in offsets.items() if isinstance(offset, int) and offset >= 0}
