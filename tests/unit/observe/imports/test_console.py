import bz2
import errno
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.observe.imports.console import Line, read_lines


def read(tmp_path: Path, data: bytes) -> list[Line]:
    path = tmp_path / "log"
    path.write_bytes(data)
    return list(read_lines(path))


def texts(tmp_path: Path, data: bytes) -> list[str]:
    return [line.text for line in read(tmp_path, data)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_log_is_unpacked_by_what_it_is_and_not_by_its_name(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    assert texts(tmp_path, pack(b"one\ntwo\n")) == ["one", "two"]


def test_a_torn_packed_log_is_read_up_to_its_tear(tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"{number:08d}\n" for number in range(40_000)).encode())
    lines = texts(tmp_path, packed[: len(packed) // 2])
    assert 1000 < len(lines) < 40_000
    assert lines == [f"{number:08d}" for number in range(len(lines))]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_spoilt_packed_log_ends_there(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    lines = "".join(f"{number:08d} {number * number % 7919}\n" for number in range(120_000)).encode()
    packed = bytearray(pack(lines))
    packed[len(packed) * 3 // 4] ^= 0xFF
    found = texts(tmp_path, bytes(packed))
    assert found[:1000] == lines.decode().splitlines()[:1000]
    assert len(found) < 120_000


def test_a_disk_that_fails_is_not_the_end_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    failing = io.BytesIO()
    monkeypatch.setattr(failing, "read", fail)
    monkeypatch.setattr("tandem.observe.imports.console._unpack", lambda _file: failing)
    with pytest.raises(OSError, match="Input/output error"):
        texts(tmp_path, b"one\n")


def test_a_last_line_without_its_end_is_left_out(tmp_path: Path) -> None:
    assert texts(tmp_path, b"whole\nGlobal step 188") == ["whole"]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\x1b[1;32mgreen\x1b[0m\n", ["green"]),
        (b"\x1b]0;a title\x07text\n", ["text"]),
        (b"text\r\n", ["text"]),
        (b"Processed 1\rProcessed 2\r\r\n", ["Processed 1", "Processed 2"]),
        (b"a\x00b\x08c\x7f\n", ["abc"]),
        ("▁Über\n".encode(), ["▁Über"]),
        (b"\xff\xfe\n", ["\ufffd\ufffd"]),
    ],
)
def test_what_a_terminal_adds_is_taken_away(tmp_path: Path, data: bytes, shown: list[str]) -> None:
    assert texts(tmp_path, data) == shown


def test_mpirun_says_who_printed_a_line(tmp_path: Path) -> None:
    data = b"[1,0]<stdout>:first\nFri Jun 26 15:36:42 2020[1,12]<stderr>:second[1,3]<stdout>:third\nfourth\n"
    assert read(tmp_path, data) == [
        Line(text="first", rank=0),
        Line(text="second", rank=12),
        Line(text="third", rank=3),
        Line(text="fourth"),
    ]


def test_a_line_that_is_longer_than_any_is_dropped_and_the_next_is_not(tmp_path: Path) -> None:
    assert texts(tmp_path, b"one\n" + b"x" * 3_000_000 + b"\ntwo\n") == ["one", "two"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_empty_lines_are_nothing_however_many(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    assert texts(tmp_path, pack(b"one\n" + b"\n" * 300_000 + b"two\n\r\n\nthree\n")) == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_unpacks_to_more_than_any_log_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(TandemError, match="holds more than 16,777,216 bytes of text"):
        read(tmp_path, pack(b"\n" * ((1 << 24) + 1)))


def test_a_hole_of_any_size_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TandemError, match="holds more than"):
        list(read_lines(tmp_path / "log"))
