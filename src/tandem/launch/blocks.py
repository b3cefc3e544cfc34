"""The bytes of files on their way to another host: in blocks, each packed where that is quicker than sending it."""

import math
import struct
import time
from collections.abc import Callable, Iterator
from typing import IO

import zstandard

__all__ = ["BLOCK_BYTES", "BlockWriter", "BrokenOffError", "read_blocks"]

BLOCK_BYTES = 1 << 20
"""The most of a file that is held in memory."""

_HEAD = struct.Struct(">?I")
"""Whether the block is packed, and its bytes on the wire."""
_LEVEL = 3
_RUN_BYTES = 8 << 20
_SETTLE_BYTES = 3 << 20  # what ssh and the network hold back at the beginning of a run says nothing about it
_RUNS = 8


class BrokenOffError(Exception):
    """The other side ended, or went silent, in the middle; or what it sent is no block."""


class BlockWriter:
    """Writes blocks to a pipe; in runs, packed and as they are, to see which way more gets through.

    Only that tells: how fast we pack and how fast the link is depend on what else goes on here and there.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._pack: Callable[[bytes], bytes] = zstandard.ZstdCompressor(level=_LEVEL).compress
        self._is_packing = True
        self._cost_s = {True: math.inf, False: math.inf}
        """Seconds a byte, when last tried, packed and not."""
        self._runs = 0
        self._run_bytes, self._timed_bytes, self._timed_s = 0, 0, 0.0

    def write(self, block: bytes) -> None:
        """Send at most BLOCK_BYTES; waits while the link cannot take more."""
        begun = time.monotonic()
        packed = self._pack(block) if self._is_packing else block
        sent, is_packed = (packed, True) if len(packed) < len(block) else (block, False)
        self._pipe.write(_HEAD.pack(is_packed, len(sent)))
        self._pipe.write(sent)
        self._pipe.flush()
        self._watch(len(block), time.monotonic() - begun)

    def _watch(self, count: int, took_s: float) -> None:
        self._run_bytes += count
        if self._run_bytes > _SETTLE_BYTES:
            self._timed_bytes += count
            self._timed_s += took_s
        if self._run_bytes >= _RUN_BYTES:
            self._cost_s[self._is_packing] = self._timed_s / self._timed_bytes
            self._choose()

    def _choose(self) -> None:
        """Begin a run the better way; now and then the other way, for links and loads change."""
        self._runs += 1
        is_better = self._cost_s[True] <= self._cost_s[False]
        self._is_packing = is_better != (self._runs % _RUNS == 1)
        self._run_bytes, self._timed_bytes, self._timed_s = 0, 0, 0.0


def read_blocks(pipe: IO[bytes], *, total: int) -> Iterator[bytes]:
    """The blocks of a file of so many bytes."""
    left = total
    while left:
        is_packed, length = _HEAD.unpack(_read(pipe, _HEAD.size))
        if not 0 < length <= BLOCK_BYTES:
            raise BrokenOffError
        block = _read(pipe, length)
        block = _unpacked(block) if is_packed else block
        if not 0 < len(block) <= left:
            raise BrokenOffError
        left -= len(block)
        yield block


def _unpacked(data: bytes) -> bytes:
    try:
        # Looked at first: a small block can claim to unpack into more than there is memory.
        if not 0 < zstandard.frame_content_size(data) <= BLOCK_BYTES:
            raise BrokenOffError
        unpacked: bytes = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise BrokenOffError from error
    return unpacked


def _read(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) != count:
        raise BrokenOffError
    return data
