"""Sentence pairs of a part, read out of its archives by mtdata's parsers; nothing is unpacked to disk."""

import fnmatch
import gzip
import io
import logging
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, cast

from tandem.data.corpus.public.entry import Part
from tandem.data.corpus.stream import open_text
from tandem.errors import TandemError

__all__ = ["read_pairs", "require_mtdata"]

_MAX_GROWTH = 100
_FREE_BYTES = 1 << 26
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, tarfile.TarError, zipfile.BadZipFile)


class _Bounded(io.RawIOBase):
    """A stream that gives no more than text can honestly grow when it is unpacked (three- to tenfold)."""

    def __init__(self, stream: BinaryIO, archive: Path) -> None:
        self._stream = stream
        self._archive = archive
        self._left = _FREE_BYTES + _MAX_GROWTH * archive.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        data = self._stream.read(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise TandemError(
                f"{self._archive} grows more than {_MAX_GROWTH}-fold when unpacked: it is not plain text."
            )
        view[: len(data)] = data
        return len(data)


class _Text:
    """A stream in the shape that mtdata's parsers open: they ask for `suffix` and `open`."""

    suffix = ""

    def __init__(self, stream: io.RawIOBase) -> None:
        self.stream = stream

    def open(self, mode: str, **_: str | None) -> io.TextIOWrapper:
        """Open as text: only a newline ends a line, and bytes that are not UTF-8 pass through as they are."""
        buffered = io.BufferedReader(self.stream, 1 << 20)
        assert mode == "rt"
        return io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="surrogateescape", newline="\n")


@contextmanager
def require_mtdata() -> Iterator[None]:
    """Explain a missing mtdata, and keep it off the root logger, which it would set up and write to."""
    root, guard = logging.getLogger(), logging.NullHandler()
    root.addHandler(guard)
    try:
        yield
    except ModuleNotFoundError as error:
        raise TandemError(
            f"Public corpora need the library {error.name}: pip install 'tandem-nmt[corpora]'"
        ) from error
    finally:
        root.removeHandler(guard)


def read_pairs(part: Part, archives: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the pairs in the order of `part.languages`; bytes that are not UTF-8 come as surrogates."""
    with ExitStack() as stack, require_mtdata():
        try:
            yield from _parse(part, _open_texts(part, archives, stack))
        except _DAMAGE as error:
            names = " and ".join(str(path) for path in archives)
            raise TandemError(
                f"{names} is damaged ({error}): delete it and run the same command again."
            ) from error


def _open_texts(part: Part, archives: Sequence[Path], stack: ExitStack) -> list[_Text]:
    if part.members:
        streams = [(archives[0], _open_member(archives[0], member, stack)) for member in part.members]
    else:
        streams = [(path, stack.enter_context(open_text(path))) for path in archives]
    return [_Text(_Bounded(stream, path)) for path, stream in streams]


def _open_member(path: Path, pattern: str, stack: ExitStack) -> BinaryIO:
    """Open a file inside an archive. Links are passed over; no name from the archive is used as a path."""
    with path.open("rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"
    if is_zip:
        zipped = stack.enter_context(zipfile.ZipFile(path))
        names = fnmatch.filter(zipped.namelist(), pattern)
        if len(names) == 1:
            return cast(BinaryIO, stack.enter_context(zipped.open(names[0])))
        raise TandemError(
            f"{path} holds {len(names)} files {pattern}, not one: its publisher has changed it."
        )
    packed = stack.enter_context(tarfile.open(path))  # noqa: SIM115
    for info in packed:
        member = (
            packed.extractfile(info) if info.isfile() and fnmatch.fnmatchcase(info.name, pattern) else None
        )
        if member is not None:
            return cast(BinaryIO, stack.enter_context(member))
    raise TandemError(f"{path} holds no file {pattern}: its publisher has changed it.")


def _parse(part: Part, texts: list[_Text]) -> Iterator[tuple[str, str]]:
    from mtdata import sgm  # noqa: PLC0415 - an extra, which only fetching needs
    from mtdata.parser import Parser  # noqa: PLC0415

    if part.form == "wmt21xml":
        return cast(Iterator[tuple[str, str]], sgm.read_wmt21_xml(texts[0].stream))
    if part.form == "tsv":
        rows = (Parser(texts, ext="tsv").read_tsv(text) for text in texts)
        return _choose_columns(part, chain.from_iterable(rows))
    if part.form == "sgm":
        return _align(part, [sgm.read_sgm(text) for text in texts])
    pairs = _align(part, [Parser(texts, ext="txt").read_plain(text) for text in texts])
    return _between_tags(pairs) if part.form == "ted" else pairs


def _choose_columns(part: Part, rows: Iterator[list[str]]) -> Iterator[tuple[str, str]]:
    """Take two columns; a row that lacks one gives an empty side, which cleaning counts and drops."""
    left, right = part.columns
    for row in rows:
        yield row[left] if left < len(row) else "", row[right] if right < len(row) else ""


def _align(part: Part, sides: list[Iterator[str]]) -> Iterator[tuple[str, str]]:
    missing: Any = object()
    for count, (left, right) in enumerate(zip_longest(*sides, fillvalue=missing)):
        if left is missing or right is missing:
            short = part.languages[0 if left is missing else 1]
            raise TandemError(
                f"The sides of {part.name} do not match: {short} ends after {count:,} lines, the other goes "
                "on; its publisher has changed it, or the download is damaged."
            )
        yield left, right


def _between_tags(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pass over lines that describe a talk (`<title>…`, `<url>…`), and trim the talk's own."""
    for left, right in pairs:
        if not (left.startswith("<") and right.startswith("<")):
            yield left.strip(), right.strip()
