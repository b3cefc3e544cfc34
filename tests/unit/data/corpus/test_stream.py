import bz2
import gzip
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tandem.data.corpus.stream import MAX_LINE_BYTES, read_lines
from tandem.errors import TandemError

TEXT = "".join(f"Zeile {number} äöü\n" for number in range(20_000)).encode()
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def lines_of(path: Path, content: bytes) -> list[bytes]:
    path.write_bytes(content)
    return list(read_lines(path))


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_every_compression_gives_the_same_lines(tmp_path: Path, compression: str) -> None:
    assert b"".join(lines_of(tmp_path / "text", COMPRESSORS[compression](TEXT))) == TEXT


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_several_members_one_after_another_are_one_text(tmp_path: Path, compression: str) -> None:
    half = TEXT.index(b"\n", len(TEXT) // 2) + 1
    content = b"".join(COMPRESSORS[compression](piece) for piece in (TEXT[:half], TEXT[half:]))
    assert b"".join(lines_of(tmp_path / "text", content)) == TEXT


@pytest.mark.parametrize("compression", [name for name in COMPRESSORS if name != "plain"])
@pytest.mark.parametrize("share", [0.3, 0.999])
def test_a_cut_archive_is_named_with_the_line_reached(tmp_path: Path, compression: str, share: float) -> None:
    whole = COMPRESSORS[compression](TEXT)
    with pytest.raises(TandemError, match=r"text is damaged or cut short after line [\d,]+"):
        lines_of(tmp_path / "text", whole[: int(len(whole) * share)])


def test_a_zst_file_may_begin_with_a_frame_to_be_skipped(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    assert b"".join(lines_of(tmp_path / "text", skipped + COMPRESSORS["zst"](TEXT))) == TEXT


@pytest.mark.parametrize("compression", ["gz", "xz", "bz2"])
def test_damage_in_the_middle_is_named_too(tmp_path: Path, compression: str) -> None:
    whole = bytearray(COMPRESSORS[compression](TEXT))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(TandemError, match="is damaged"):
        lines_of(tmp_path / compression, bytes(whole))


def test_the_byte_order_mark_goes_and_only_at_the_start(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "text", b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n") == [
        b"one\n",
        b"\xef\xbb\xbftwo\n",
    ]


def test_utf16_is_refused_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="UTF-16.*iconv"):
        lines_of(tmp_path / "text", "ein Satz\n".encode("utf-16"))


def test_only_the_newline_byte_ends_a_line(tmp_path: Path) -> None:
    content = "a\u2028b\u0085c\x0bd\x0ce\rf\n".encode()
    assert lines_of(tmp_path / "text", content) == [content]


def test_a_last_line_without_newline_counts(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "text", b"one\ntwo") == [b"one\n", b"two\n"]


def test_empty_lines_stay(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "text", b"\n\nthree\n\n") == [b"\n", b"\n", b"three\n", b"\n"]


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize(
    "length", [MAX_LINE_BYTES - 1, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 3 * MAX_LINE_BYTES]
)
def test_lines_around_the_limit_keep_the_count_of_lines(tmp_path: Path, length: int, end: bytes) -> None:
    lines = lines_of(tmp_path / "text", b"first\n" + b"x" * length + end)
    assert len(lines) == 2
    assert len(lines[1]) == min(length, MAX_LINE_BYTES) + 1
    assert lines[1].endswith(b"x\n")


def test_a_line_of_50_megabytes_does_not_fill_the_memory(tmp_path: Path) -> None:
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"before\n" + b"x" * 50_000_000 + b"\nafter\n", 1))
    program = (
        "import resource, sys; from pathlib import Path; from tandem.data.corpus.stream import read_lines;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "lines = [len(line) for line in read_lines(Path(sys.argv[1]))];"
        "print(lines, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "text.gz")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines, grown_kb = printed.rsplit(" ", 1)
    assert lines == f"[7, {MAX_LINE_BYTES + 1}, 6]"
    assert int(grown_kb) < 16_000


def test_a_file_that_grows_while_being_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    with pytest.raises(TandemError, match="changed while it was being read"):
        for number, _ in enumerate(read_lines(path)):
            if number == 5:
                with path.open("ab") as file:
                    file.write(b"more\n")


def test_a_file_that_is_replaced_while_being_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(TEXT)
    with pytest.raises(TandemError, match="changed while it was being read"):
        for number, _ in enumerate(read_lines(path)):
            if number == 5:
                (tmp_path / "other").write_bytes(TEXT)
                (tmp_path / "other").replace(path)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"Cannot read .*absent: No such file"):
        list(read_lines(tmp_path / "absent"))
