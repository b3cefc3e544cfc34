"""Reads the scalars of TensorBoard's event files: checked, bounded, and quietly ended where a file is torn."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from tandem.files import open_regular
from tandem.observe.sinks.event_file import masked_crc32c
from tandem.progress import SILENT, Bar, Silent

__all__ = ["EventFile", "Point", "is_event_file"]

_LONGEST = 1 << 20
"""Longer records hold graphs and pictures, and are passed over."""
_HEAD = struct.Struct("<QI")
_TAIL_BYTES = 4
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_CONTENT = {1: _FLOAT, 2: _DOUBLE}
"""Kinds of tensors that hold one number, by TensorFlow's number for the kind."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_Value: TypeAlias = int | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A number of a curve."""

    wall_s: float
    """Seconds since 1970."""
    step: int
    tag: str
    value: float


class EventFile:
    """One event file; says after reading what of it was lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_torn = False
        """Whether it ends in the midst of a record, or has a spoilt one, after which nothing is read."""
        self.skipped = 0
        """Records that are whole but make no sense."""
        self.begin_s = 0.0
        """When it was made, in seconds since 1970; 0 where it does not say."""

    def points(self, bar: Bar | None = None) -> Iterator[Point]:
        """All its scalars, in the order of the file."""
        with open_regular(self.path, links=True) as file:
            size = os.fstat(file.fileno()).st_size
            for record in self._records(file, size=size, bar=bar or _NOBODY):
                try:
                    self.begin_s = self.begin_s or _time(record)
                    yield from list(_points(record))
                except (ValueError, struct.error):
                    self.skipped += 1

    def _records(self, file: BinaryIO, *, size: int, bar: Bar) -> Iterator[bytes]:
        place = 0
        while place < size:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                break
            length, checksum = _HEAD.unpack(head)
            after = place + _HEAD.size + length + _TAIL_BYTES
            if masked_crc32c(head[:8]) != checksum or after > size:
                break
            if length > _LONGEST:
                file.seek(after)
            else:
                data, tail = file.read(length), file.read(_TAIL_BYTES)
                if len(tail) < _TAIL_BYTES or masked_crc32c(data) != int.from_bytes(tail, "little"):
                    break
                yield data
            bar.advance(after - place)
            place = after
        self.is_torn = place < size


_NOBODY: Silent = SILENT


def is_event_file(path: Path) -> bool:
    """Whether it is named as TensorBoard's files are."""
    return ".tfevents." in path.name or path.name.startswith("events.out.tfevents")


def _time(event: bytes) -> float:
    for number, kind, value in _fields(event):
        if (number, kind) == (1, _FIXED64):
            (wall_s,) = _DOUBLE.unpack(_raw(value))
            return float(wall_s)
    return 0.0


def _points(event: bytes) -> Iterator[Point]:
    wall_s, step, summaries = 0.0, 0, list[bytes]()
    for number, kind, value in _fields(event):
        if (number, kind) == (1, _FIXED64):
            (wall_s,) = _DOUBLE.unpack(_raw(value))
        elif (number, kind) == (2, _VARINT):
            step = _signed(value)
        elif (number, kind) == (5, _BYTES):
            summaries.append(_raw(value))
    for summary in summaries:
        for number, kind, value in _fields(summary):
            if (number, kind) == (1, _BYTES) and (named := _scalar(_raw(value))) is not None:
                yield Point(wall_s=wall_s, step=step, tag=named[0], value=named[1])


def _scalar(data: bytes) -> tuple[str, float] | None:
    """Tag and number of a value of a summary; None for what is no number, such as a histogram."""
    tag, found = "", None
    for number, kind, value in _fields(data):
        if (number, kind) == (1, _BYTES):
            tag = _raw(value).decode(errors="replace")
        elif (number, kind) == (2, _FIXED32):
            (found,) = _FLOAT.unpack(_raw(value))
        elif (number, kind) == (8, _BYTES):
            found = _of_tensor(_raw(value))
    return None if found is None or not tag else (tag, float(found))


def _of_tensor(data: bytes) -> float | None:
    """The number in a tensor that holds one; None for others."""
    dtype, numbers = 0, list[float]()
    content = b""
    for number, kind, value in _fields(data):
        if (number, kind) == (1, _VARINT):
            dtype = _signed(value)
        elif (number, kind) == (4, _BYTES):
            content = _raw(value)
        elif number in {5, 6} and kind != _VARINT:
            numbers += _packed(_raw(value), _FLOAT if number == 5 else _DOUBLE)
    form = _CONTENT.get(dtype)
    if content and form is not None and len(content) == form.size:
        numbers += _packed(content, form)
    return numbers[0] if len(numbers) == 1 else None


def _packed(data: bytes, form: struct.Struct) -> list[float]:
    if len(data) % form.size:
        raise ValueError("a number is cut off")
    return [number for (number,) in form.iter_unpack(data)]


def _fields(data: bytes) -> Iterator[tuple[int, int, _Value]]:
    """The fields of a protocol buffer: number, wire type, value; ValueError where it is none."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield key >> 3, kind, value
            continue
        if kind == _BYTES:
            length, place = _varint(data, place)
        elif kind in {_FIXED64, _FIXED32}:
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("an unknown wire type")
        if place + length > len(data):
            raise ValueError("a field is cut off")
        yield key >> 3, kind, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ValueError("a number is cut off")
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
    raise ValueError("a number is too long")


def _signed(value: _Value) -> int:
    number = int(value) if isinstance(value, int) else 0
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def _raw(value: _Value) -> bytes:
    return value if isinstance(value, bytes) else b""
