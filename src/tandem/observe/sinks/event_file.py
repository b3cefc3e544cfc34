"""TensorBoard's event files: framed records with checksums, each a protocol buffer that holds scalars."""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from tandem.files import open_regular

__all__ = ["encode_restart", "encode_scalars", "encode_version", "frame", "masked_crc32c", "read_times"]

_LONGEST = 1 << 20
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
_WALL_TIME = struct.Struct("<Bd")
_FLOAT = struct.Struct("<f")

# Field numbers shifted by three, with the wire type in the low bits: 0 varint, 1 double, 2 bytes, 5 float.
_EVENT_WALL_TIME, _EVENT_STEP, _EVENT_VERSION, _EVENT_SUMMARY, _EVENT_SESSION = 0x09, 0x10, 0x1A, 0x2A, 0x3A
_SUMMARY_VALUE, _VALUE_TAG, _VALUE_SIMPLE = 0x0A, 0x0A, 0x15
_SESSION_START = b"\x08\x01"


def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)  # noqa: PLW2901 - shifted bit by bit
        table.append(value)
    return tuple(table)


_CRC_TABLE = _crc_table()


def masked_crc32c(data: bytes) -> int:
    """The checksum that stands after a length and after data."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def frame(data: bytes) -> bytes:
    """A record of an event file: length, its checksum, data, its checksum."""
    length = _LENGTH.pack(len(data))
    return b"".join(
        (length, _CHECKSUM.pack(masked_crc32c(length)), data, _CHECKSUM.pack(masked_crc32c(data)))
    )


def encode_version(time_s: float) -> bytes:
    """The event that every file begins with."""
    return _event(time_s, step=0) + _field(_EVENT_VERSION, b"brain.Event:2")


def encode_restart(time_s: float, *, step: int) -> bytes:
    """Tells the reader to forget what it has of this step and later ones: they will be done again."""
    return _event(time_s, step=step) + _field(_EVENT_SESSION, _SESSION_START)


def encode_scalars(time_s: float, *, step: int, scalars: Mapping[str, float]) -> bytes:
    """Numbers by tag, after a step."""
    values = b"".join(_field(_SUMMARY_VALUE, _scalar(tag, value)) for tag, value in scalars.items())
    return _event(time_s, step=step) + _field(_EVENT_SUMMARY, values)


def read_times(path: Path) -> Iterator[float]:
    """The wall times of the whole records in a file that this module wrote; ends where the file is torn."""
    with open_regular(path) as file:
        while len(head := file.read(12)) == 12:
            (length,) = _LENGTH.unpack_from(head)
            body = file.read(length + 4) if length < _LONGEST else b""
            if len(body) < max(length + 4, _WALL_TIME.size):
                return
            yield _WALL_TIME.unpack_from(body)[1]


def _event(time_s: float, *, step: int) -> bytes:
    return _WALL_TIME.pack(_EVENT_WALL_TIME, time_s) + bytes((_EVENT_STEP,)) + _varint(step)


def _scalar(tag: str, value: float) -> bytes:
    # A number too great for 32 bits is an infinity there.
    try:
        packed = _FLOAT.pack(value)
    except OverflowError:
        packed = _FLOAT.pack(float("inf") if value > 0 else float("-inf"))
    return _field(_VALUE_TAG, tag.encode()) + bytes((_VALUE_SIMPLE,)) + packed


def _field(key: int, data: bytes) -> bytes:
    return bytes((key,)) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
