"""Blocks hold whole lines, in order, and nothing of a line that is not finished."""

from pathlib import Path

import pytest

from tandem.observe.series import blocks
from tandem.observe.series.blocks import read_blocks


@pytest.mark.parametrize("size", [1, 2, 5, 7, 100])
def test_whole_lines_come_whatever_the_size_of_a_block(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n\nthree\nfour\nunfin")
    read = list(read_blocks(path, size=size))
    assert b"".join(block for block, _ in read) == b"one\n\nthree\nfour\n"
    assert all(block.endswith(b"\n") or not block for block, _ in read)
    assert not any(lost for _, lost in read)


@pytest.mark.parametrize("size", [3, 6, 100])
def test_a_line_that_is_too_long_is_counted_once_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(blocks, "_LONGEST_LINE", 8)
    path = tmp_path / "a"
    path.write_bytes(b"one\n" + 50 * b"x" + b"\ntwo\n")
    read = list(read_blocks(path, size=size))
    lines = b"".join(block for block, _ in read).splitlines()
    assert [line for line in lines if b"x" not in line] == [b"one", b"two"]
    assert sum(lost for _, lost in read) == (size < 50)
