"""What is new in the files of a run's log, and putting it to the files of another host's copy."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tandem.artefact import write_atomic

__all__ = ["Collector", "Piece", "Tail"]

_KINDS = (".jsonl", ".txt")
_MOST_BYTES = 1 << 18


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
            with suppress(OSError), path.open("rb") as file:
                offset = self._offsets.get(path.name, 0)
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
    """Keeps a copy of other hosts' logs, and how much of each it has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[str, dict[str, int]] = {}

    def offsets(self, host: str) -> Mapping[str, int]:
        """How many bytes of each file of a host are here."""
        if host not in self._offsets:
            held: dict[str, int] = {}
            with suppress(OSError, ValueError):
                held = json.loads(self._place(host).read_bytes())
            self._offsets[host] = held
        return self._offsets[host]

    def take(self, host: str, piece: Piece) -> None:
        """Append; a full disk must not end the run, and what it refuses is not asked for again."""
        if Path(piece.file).name != piece.file or Path(piece.file).suffix not in _KINDS:
            return
        offsets = {**self.offsets(host), piece.file: piece.offset}
        self._offsets[host] = offsets
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / piece.file).open("a", encoding="utf-8") as file:
                file.write(piece.text)
            write_atomic(self._place(host), json.dumps(offsets).encode())

    def _place(self, host: str) -> Path:
        return self._folder / f".from-{host.rpartition('@')[2]}.json"
