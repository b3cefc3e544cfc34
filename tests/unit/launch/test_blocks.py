"""Blocks on the wire: every byte comes over, packed or not, and nonsense is refused."""

import io
import random
import struct
from typing import IO, cast

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tandem.launch.blocks import BLOCK_BYTES, BlockWriter, BrokenOffError, read_blocks

ZEROS = bytes(BLOCK_BYTES)
NOISE = random.Random(1).randbytes(BLOCK_BYTES)


def written(*blocks: bytes) -> io.BytesIO:
    pipe = io.BytesIO()
    writer = BlockWriter(pipe)
    for block in blocks:
        writer.write(block)
    pipe.seek(0)
    return pipe


@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=5))
def test_what_is_written_is_read(blocks: list[bytes]) -> None:
    pipe = written(*blocks)
    assert list(read_blocks(pipe, total=sum(map(len, blocks)))) == blocks
    assert pipe.read() == b""


def test_a_whole_block_that_cannot_be_packed_comes_over() -> None:
    pipe = written(NOISE)
    assert len(pipe.getvalue()) == BLOCK_BYTES + 5
    assert b"".join(read_blocks(pipe, total=BLOCK_BYTES)) == NOISE


def test_the_first_block_is_packed_where_that_gains_something() -> None:
    assert len(written(ZEROS).getvalue()) < BLOCK_BYTES // 100


class Link:
    """A pipe and a packer that take their time by a clock of their own."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, mb_a_second: float, packing_mb_a_second: float
    ) -> None:
        self.now_s, self.carried = 0.0, 0
        self.rate, self.packing_rate = mb_a_second * 1e6, packing_mb_a_second * 1e6
        monkeypatch.setattr("tandem.launch.blocks.time.monotonic", lambda: self.now_s)
        self.writer = BlockWriter(cast("IO[bytes]", self))
        self.writer._pack = self.pack

    def write(self, data: bytes) -> None:
        self.carried += len(data)
        self.now_s += len(data) / self.rate

    def flush(self) -> None:
        pass

    def pack(self, block: bytes) -> bytes:
        self.now_s += len(block) / self.packing_rate
        return bytes(len(block) * 3 // 4)

    def share(self) -> float:
        """Send 400 blocks, and tell what share of their bytes went over the link."""
        before = self.carried
        for _ in range(400):
            self.writer.write(ZEROS)
        return (self.carried - before) / (400 * BLOCK_BYTES)


def test_a_slow_link_gets_packed_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Link(monkeypatch, mb_a_second=20, packing_mb_a_second=200).share() < 0.80


def test_a_link_faster_than_packing_gets_them_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Link(monkeypatch, mb_a_second=1000, packing_mb_a_second=200).share() > 0.95


def test_a_link_that_becomes_slow_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link(monkeypatch, mb_a_second=1000, packing_mb_a_second=200)
    link.share()
    link.rate = 20e6
    assert link.share() < 0.82


@pytest.mark.parametrize("kept", [0, 1, 4, 5, 100])
def test_a_stream_that_ends_early_is_noticed(kept: int) -> None:
    pipe = io.BytesIO(written(NOISE).getvalue()[:kept])
    with pytest.raises(BrokenOffError):
        list(read_blocks(pipe, total=BLOCK_BYTES))


@pytest.mark.parametrize(
    ("is_packed", "data"),
    [
        (False, b""),
        (False, bytes(11)),
        (True, b"no frame"),
        (True, zstandard.compress(bytes(11))),
        (True, zstandard.compress(bytes(BLOCK_BYTES + 1))),
        (True, zstandard.ZstdCompressor(write_content_size=False).compress(bytes(5))),
    ],
)
def test_a_block_that_is_none_or_too_long_is_refused(is_packed: bool, data: bytes) -> None:
    pipe = io.BytesIO(struct.pack(">?I", is_packed, len(data)) + data)
    with pytest.raises(BrokenOffError):
        list(read_blocks(pipe, total=10))


def test_a_block_longer_than_any_is_not_even_read() -> None:
    pipe = io.BytesIO(struct.pack(">?I", False, BLOCK_BYTES + 1) + bytes(BLOCK_BYTES + 1))
    with pytest.raises(BrokenOffError):
        list(read_blocks(pipe, total=1 << 30))
    assert pipe.tell() == 5
