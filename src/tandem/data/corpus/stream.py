"""Lines of a text file as bytes, plain or compressed, in constant memory, with every fault named."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import zstandard

from tandem.errors import TandemError

__all__ = ["MAX_LINE_BYTES", "open_text", "read_lines"]

MAX_LINE_BYTES = 1 << 16
"""A line is cut here: no sentence is this long, and one line without an end must not fill the memory."""

BUFFER_BYTES = 1 << 20
ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
BOM = b"\xef\xbb\xbf"
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError, gzip.BadGzipFile)


class ZstdStream(io.RawIOBase):
    """Decompressed bytes of a .zst file, frame after frame; a cut frame is an error, not an end."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._input = b""
        self._output = memoryview(b"")

    def readable(self) -> bool:
        """Return True: this is an input."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill `buffer`; 0 at the end of the last whole frame."""
        view = memoryview(cast(bytearray, buffer))
        while not self._output:
            if not self._decompress():
                return 0
        count = min(len(view), len(self._output))
        view[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def _decompress(self) -> bool:
        self._input = self._input or self._file.read(1 << 17)
        if not self._input:
            if self._begun:
                raise EOFError("the last frame is cut")
            return False
        self._output = memoryview(self._frame.decompress(self._input))
        self._input = b""
        self._begun = True
        if self._frame.eof:
            self._input = self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._begun = False
        return True

    def close(self) -> None:
        """Close the file beneath."""
        self._file.close()
        super().close()


def open_text(path: Path) -> io.BufferedReader:
    """Open a file for reading bytes of text; the compression is known by its first bytes, not its name."""
    try:
        with path.open("rb") as file:
            magic = file.read(10)
        if magic.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise TandemError(f"{path} is UTF-16, not UTF-8; convert it with iconv -f UTF-16 -t UTF-8.")
        return io.BufferedReader(_decompressed(path, magic), BUFFER_BYTES)
    except OSError as error:
        raise TandemError(f"Cannot read {path}: {error.strerror}; correct the path in the recipe.") from error


def _decompressed(path: Path, magic: bytes) -> io.RawIOBase:
    stream: object
    if magic.startswith(b"\x1f\x8b"):
        stream = gzip.GzipFile(path)
    elif magic.startswith(b"\xfd7zXZ\x00"):
        stream = lzma.LZMAFile(path)  # noqa: SIM115 - the reader closes it
    elif magic.startswith(b"BZh") and magic[4:10] == b"1AY&SY":
        stream = bz2.BZ2File(path)
    elif magic.startswith(b"\x28\xb5\x2f\xfd") or ZSTD_SKIPPABLE.match(magic):
        stream = ZstdStream(io.FileIO(path))
    else:
        stream = io.FileIO(path)
    return cast(io.RawIOBase, stream)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield each line ending in one newline byte, which is the only line end; cut at MAX_LINE_BYTES.

    A byte order mark at the start is removed. Raises TandemError where the file is damaged, cut, or changes meanwhile.
    """
    count = 0
    with open_text(path) as stream:
        before = _identity(path)
        try:
            for line in _lines(stream):
                count += 1
                yield line
        except DAMAGE as error:
            raise TandemError(
                f"{path} is damaged or cut short after line {count:,} ({error}); fetch or compress it again."
            ) from error
        except OSError as error:
            if error.errno is None:  # bz2 says so of a damaged file
                raise TandemError(
                    f"{path} is damaged after line {count:,}; fetch or compress it again."
                ) from error
            raise TandemError(
                f"Reading {path} failed after line {count:,}: {error}; check the disk it is on."
            ) from error
    if _identity(path) != before:
        raise TandemError(f"{path} changed while it was being read; run again when nothing writes to it.")


def _lines(stream: io.BufferedReader) -> Iterator[bytes]:
    line = stream.readline(MAX_LINE_BYTES).removeprefix(BOM)
    while line:
        if line[-1] != 10:
            line = _ended(line, stream)
        yield line
        line = stream.readline(MAX_LINE_BYTES)


def _ended(line: bytes, stream: io.BufferedReader) -> bytes:
    """Pass over the rest of a line that is too long or has no end, and give it one."""
    rest = stream.readline(MAX_LINE_BYTES)
    if rest == b"\n":
        return line + rest
    overlong = bool(rest)
    while rest and rest[-1] != 10:
        rest = stream.readline(MAX_LINE_BYTES)
    return line.ljust(MAX_LINE_BYTES, b" ") + b"\n" if overlong else line + b"\n"


def _identity(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ino
