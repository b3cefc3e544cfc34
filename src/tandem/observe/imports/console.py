"""Lines of a console log as the tool printed them: unpacked, without what terminals and mpirun put around them."""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from tandem.errors import TandemError
from tandem.files import open_regular
from tandem.progress import SILENT, Progress

__all__ = ["MOST_BYTES", "Line", "read_lines"]

MOST_BYTES = 1 << 30
"""Of text; the log of a week that tells of every step has a twentieth of that."""
LEAST_BYTES, MOST_RATIO = 1 << 24, 200
"""A packed log may have so many bytes of text, or so many times its own: the best packers make a twentieth of one."""
_CHUNK = 1 << 16
_EMPTY = re.compile(rb"\n[\r\n]+")
_LONGEST = 1 << 17
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_RANK = re.compile(r"(?:\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[\d+,(\d{1,6})\]<std(?:out|err)>:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, or the part of one that stands between two carriage returns."""

    text: str
    rank: int | None = None
    """That printed it, where mpirun says so."""


def read_lines(path: Path, progress: Progress = SILENT) -> Iterator[Line]:
    """Lines of a plain or compressed log; a last line without its end may be cut off anywhere and is left out."""
    with (
        open_regular(path, links=True) as file,
        progress.bar("read", total=path.stat().st_size, unit="B") as bar,
    ):
        seen = 0
        for line in _split(_bounded(_unpack(file), path)):
            yield from _clean(line)
            if file.tell() != seen:
                bar.advance(file.tell() - seen)
                seen = file.tell()


def _unpack(file: BufferedReader) -> BinaryIO:
    magic = file.peek(6)[:6]
    if magic.startswith(b"\xfd7zXZ\x00"):
        return cast(BinaryIO, lzma.open(file))
    if magic.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(file))
    if magic.startswith(b"BZh"):
        return cast(BinaryIO, bz2.open(file))
    return file


def _bounded(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """What a log holds, without empty lines: a few bytes may unpack to any number of them."""
    size = path.stat().st_size
    most = (
        MOST_BYTES
        if isinstance(file, BufferedReader)
        else min(MOST_BYTES, max(LEAST_BYTES, MOST_RATIO * size))
    )
    read, last = 0, b""
    while chunk := _read(file):
        if (read := read + len(chunk)) > most:
            raise TandemError(
                f"{path} holds more than {most:,} bytes of text: cut off what is no log of a run."
            )
        chunk = _EMPTY.sub(b"\n", chunk)
        chunk = chunk[1:] if last == b"\n" and chunk.startswith(b"\n") else chunk
        last = chunk[-1:] or last
        yield chunk


def _split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines; what is longer than any line of a log is dropped as it comes, so that memory stays small."""
    rest, too_long = b"", False
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if not too_long:
                yield line
            too_long = False
        if len(rest) > _LONGEST:
            rest, too_long = b"", True


def _read(file: BinaryIO) -> bytes:
    """The next bytes; a compressed file that is torn or spoilt ends there."""
    try:
        return file.read(_CHUNK)
    except (EOFError, lzma.LZMAError, zlib.error):
        return b""
    except OSError as error:
        # Of gzip and bzip2 about the data; those of the disk have a number.
        if error.errno is not None:
            raise
        return b""


def _clean(line: bytes) -> Iterator[Line]:
    for part in re.split(rb"\r+", line):
        # With the prefixes as separators, ranks and texts take turns after the first text.
        first, *tagged = _RANK.split(_ESCAPES.sub("", part.decode(errors="replace")))
        if first.strip():
            yield Line(text=first)
        for rank, text in zip(tagged[::2], tagged[1::2], strict=True):
            yield Line(text=text, rank=int(rank))
