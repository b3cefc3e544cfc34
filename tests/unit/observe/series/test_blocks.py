"""Blocks hold whole lines, in order, each once, and nothing of a line that is not finished."""

from pathlib import Path

import pytest

from tandem.observe.series import blocks
from tandem.observe.series.blocks import Tail


def read(tail: Tail, *, size: int = 100, at_most_bytes: int | None = None) -> tuple[bytes, int]:
    """All lines that come, and how many were too long."""
    found = list(tail.blocks(size=size, at_most_bytes=at_most_bytes))
    assert all(block.endswith(b"\n") or not block for block, _ in found)
    return b"".join(block for block, _ in found), sum(lost for _, lost in found)


@pytest.mark.parametrize("size", [1, 2, 5, 7, 100])
def test_whole_lines_come_whatever_the_size_of_a_block(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n\nthree\nfour\nunfin")
    assert read(Tail(path), size=size) == (b"one\n\nthree\nfour\n", 0)


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("at_most_bytes", [1, 6, 1000])
def test_lines_come_once_however_the_file_grew(tmp_path: Path, size: int, at_most_bytes: int) -> None:
    path = tmp_path / "a"
    path.touch()
    tail, held, whole = Tail(path), b"", b"one\n\nthree\nfour\n"
    for place in range(len(whole)):
        with path.open("ab") as file:
            file.write(whole[place : place + 1])
        held += read(tail, size=size, at_most_bytes=at_most_bytes)[0]
    while tail.behind_bytes(len(whole)):
        held += read(tail, size=size, at_most_bytes=at_most_bytes)[0]
    assert held == whole
    assert tail.offset == tail.passed_bytes == len(whole)


@pytest.mark.parametrize("size", [3, 6, 8])
@pytest.mark.parametrize("step", [1, 5, 11, 70])
def test_a_line_that_is_too_long_is_counted_once_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, step: int
) -> None:
    monkeypatch.setattr(blocks, "_LONGEST_LINE", 8)
    path = tmp_path / "a"
    whole = b"one\n" + 50 * b"x" + b"\n1234567\n12345678\ntwo\n" + 9 * b"y"
    tail, held, lost = Tail(path), b"", 0
    for stop in [*range(0, len(whole), step), len(whole)]:
        path.write_bytes(whole[:stop])
        more, long = read(tail, size=size)
        held, lost = held + more, lost + long
    assert (held, lost) == (b"one\n1234567\ntwo\n", 3)
    assert tail.behind_bytes(len(whole)) == 0


@pytest.mark.parametrize("other", [b"1\n2\n", b"another\nfile\nthat is longer\n", b""])
def test_a_file_that_was_cut_or_replaced_is_read_from_its_start(tmp_path: Path, other: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n2\n3\n")
    anew: list[str] = []
    tail = Tail(path, on_anew=lambda: anew.append("anew"))
    assert read(tail)[0] == b"1\n2\n3\n"
    assert not anew
    path.write_bytes(other)
    assert read(tail)[0] == other
    assert anew == ["anew"]
    assert tail.offset == len(other)


def test_an_unfinished_line_is_not_behind_until_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\nunfin")
    tail = Tail(path)
    assert tail.behind_bytes(9) == 9
    read(tail)
    assert (tail.offset, tail.behind_bytes(9), tail.behind_bytes(12)) == (4, 0, 3)


def test_a_file_that_is_gone_has_nothing_new(tmp_path: Path) -> None:
    assert read(Tail(tmp_path / "a")) == (b"", 0)


@pytest.mark.parametrize("at_most_bytes", [None, 1, 1000])
def test_a_hole_costs_nothing_and_is_one_lost_line(tmp_path: Path, at_most_bytes: int | None) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(b"one\n")
        file.seek(1 << 40)
        file.write(b"torn\ntwo\n")
        file.truncate(1 << 41)
    tail, held, lost = Tail(path), b"", 0
    while tail.behind_bytes(path.stat().st_size):
        more, long = read(tail, size=1 << 20, at_most_bytes=at_most_bytes)
        held, lost = held + more, lost + long
    assert (held, lost) == (b"one\ntwo\n", 2)
