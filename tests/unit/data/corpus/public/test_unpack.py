"""Text out of archives of every form, and archives that are not what they should be."""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tandem.data.corpus.public import unpack
from tandem.data.corpus.public.entry import Archive, Form, Part
from tandem.data.corpus.public.unpack import read_pairs
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tests.unit.data.corpus.public.conftest import Packer

EN, DE = b"one\ntwo\n", b"eins\nzwei\n"
PAIRS = [("one", "eins"), ("two", "zwei")]


def build_part(*members: str, form: Form = "txt", columns: tuple[int, int] = (0, 1)) -> Part:
    return Part(
        name="news",
        split="train",
        languages=("en", "de"),
        archives=(Archive(url="http://127.0.0.1/x"),),
        members=members,
        form=form,
        columns=columns,
    )


def save(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_two_files_of_a_tar(tmp_path: Path, pack: Packer) -> None:
    archive = save(tmp_path / "a.tgz", pack.tgz({"t/x.fr": b"un\n", "t/x.de": DE, "t/x.en": EN}))
    assert list(read_pairs(build_part("t/x.en", "t/x.de"), [archive])) == PAIRS


def test_two_files_of_a_zip_found_by_pattern(tmp_path: Path, pack: Packer) -> None:
    archive = save(tmp_path / "a.zip", pack.zip({"README": b"", "T.de-en.de": DE, "T.de-en.en": EN}))
    assert list(read_pairs(build_part("*.en", "*.de"), [archive])) == PAIRS


@pytest.mark.parametrize("squeeze", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_one_file_a_side(tmp_path: Path, squeeze: type[bytes]) -> None:
    paths = [save(tmp_path / "en", squeeze(EN)), save(tmp_path / "de", squeeze(DE))]
    assert list(read_pairs(build_part(), paths)) == PAIRS


def test_columns_of_a_table_where_a_short_row_gives_empty_sides(tmp_path: Path) -> None:
    table = b"eins\tx\tone\r\nnur\n\nzwei\tx\t two \textra\n"
    archive = save(tmp_path / "a.tsv.gz", gzip.compress(table))
    pairs = list(read_pairs(build_part(form="tsv", columns=(2, 0)), [archive]))
    assert pairs == [("one", "eins"), ("", "nur"), ("", ""), ("two", "zwei")]


def test_a_table_inside_a_zip(tmp_path: Path, pack: Packer) -> None:
    archive = save(tmp_path / "a.zip", pack.zip({"x/a.tsv": b"one\teins\ntwo\tzwei\n"}))
    assert list(read_pairs(build_part("x/a.tsv", form="tsv"), [archive])) == PAIRS


def test_sgml_with_escaped_characters(tmp_path: Path, pack: Packer) -> None:
    def sgml(*lines: str) -> bytes:
        segments = "\n".join(f'<seg id="{n}">{line}</seg>' for n, line in enumerate(lines, 1))
        return f'<srcset>\n<doc docid="1">\n<p>\n{segments}\n</p>\n</doc></srcset>\n'.encode()

    files = {"dev/n-src.en.sgm": sgml("one", "R&amp;D"), "dev/n-ref.de.sgm": sgml(" eins", "F&amp;E")}
    archive = save(tmp_path / "a.tgz", pack.tgz(files))
    pairs = list(read_pairs(build_part("dev/n-src.en.sgm", "dev/n-ref.de.sgm", form="sgm"), [archive]))
    assert pairs == [("one", "eins"), ("R&D", "F&E")]


def test_the_xml_of_wmt_since_2021(tmp_path: Path, pack: Packer) -> None:
    xml = (
        b"<dataset><doc><src lang='en'><p><seg id='1'>one</seg><seg id='2'>two</seg></p></src>"
        b"<ref lang='de'><p><seg id='1'>eins</seg><seg id='2'>zwei</seg></p></ref></doc></dataset>"
    )
    archive = save(tmp_path / "a.tgz", pack.tgz({"test/n.xml": xml}))
    assert list(read_pairs(build_part("test/n.xml", form="wmt21xml"), [archive])) == PAIRS


def test_talks_without_the_lines_that_describe_them(tmp_path: Path, pack: Packer) -> None:
    files = {
        "en": b"<url>http://x</url>\n<title>A talk</title>\n one \n<3 two\n",
        "de": b"<url>http://x</url>\n<title>Ein Vortrag</title>\n eins\nzwei\n",
    }
    archive = save(tmp_path / "a.tgz", pack.tgz(files))
    pairs = list(read_pairs(build_part("en", "de", form="ted"), [archive]))
    assert pairs == [("one", "eins"), ("<3 two", "zwei")]


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    en = "\ufeffa\u2028b\u0085c\rd\x0be\r\nlast".encode()
    paths = [save(tmp_path / "en", en), save(tmp_path / "de", b"x\ny")]
    assert list(read_pairs(build_part(), paths)) == [("a\u2028b\u0085c\rd\x0be", "x"), ("last", "y")]


def test_bytes_that_are_not_utf8_pass_through(tmp_path: Path) -> None:
    paths = [save(tmp_path / "en", b"caf\xe9\n"), save(tmp_path / "de", b"x\n")]
    [(left, _)] = read_pairs(build_part(), paths)
    assert left.encode("utf-8", "surrogateescape") == b"caf\xe9"


def test_sides_of_unequal_length_are_named_with_the_line(tmp_path: Path) -> None:
    paths = [save(tmp_path / "en", EN), save(tmp_path / "de", b"eins\n")]
    with pytest.raises(TandemError, match="sides of news do not match: de ends after 1 lines"):
        list(read_pairs(build_part(), paths))


@pytest.mark.parametrize("form", ["tgz", "gz", "zip"])
def test_an_archive_that_is_cut_short_is_an_error(tmp_path: Path, pack: Packer, form: str) -> None:
    text = b"".join(b"line %d\n" % (n * 7919 % 100_003) for n in range(20_000))
    if form == "gz":
        whole, part, count = gzip.compress(text), build_part(), 2
    else:
        whole = (pack.tgz if form == "tgz" else pack.zip)({"en": text, "de": text})
        part, count = build_part("en", "de"), 1
    archive = save(tmp_path / "a", whole[: len(whole) // 2])
    with pytest.raises(TandemError, match=r"a is damaged .*: delete it and run the same command again"):
        list(read_pairs(part, [archive] * count))


@pytest.mark.parametrize("kind", ["tgz", "zip"])
def test_a_file_that_the_archive_lacks_is_named(tmp_path: Path, pack: Packer, kind: str) -> None:
    archive = save(tmp_path / "a", (pack.tgz if kind == "tgz" else pack.zip)({"en": EN}))
    with pytest.raises(TandemError, match=r"files? t/x\.de"):
        list(read_pairs(build_part("en", "t/x.de"), [archive]))


def test_a_pattern_that_fits_two_files_of_a_zip_is_refused(tmp_path: Path, pack: Packer) -> None:
    archive = save(tmp_path / "a", pack.zip({"a.en": EN, "b.en": EN, "a.de": DE}))
    with pytest.raises(TandemError, match=r"2 files \*\.en, not one"):
        list(read_pairs(build_part("*.en", "*.de"), [archive]))


def test_a_link_in_an_archive_is_never_followed(tmp_path: Path, pack: Packer) -> None:
    secret = save(tmp_path / "secret", b"secret\n")
    archive = save(tmp_path / "a.tgz", pack.tgz({"de": DE}, links={"en": str(secret)}))
    with pytest.raises(TandemError, match="holds no file en"):
        list(read_pairs(build_part("en", "de"), [archive]))


def test_names_that_lead_out_of_an_archive_write_nothing(tmp_path: Path, pack: Packer) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    archive = save(inside / "a.tgz", pack.tgz({"../evil": b"x", "/evil": b"x", "en": EN, "de": DE}))
    assert list(read_pairs(build_part("en", "de"), [archive])) == PAIRS
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "a.tgz"]


def test_an_archive_that_grows_without_measure_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "_FREE_BYTES", 1000)
    bomb = save(tmp_path / "bomb.gz", gzip.compress(bytes(10_000_000)))
    with pytest.raises(TandemError, match=r"bomb\.gz grows more than 100-fold"):
        list(read_pairs(build_part(), [bomb, bomb]))


def test_reading_leaves_the_root_logger_alone(tmp_path: Path) -> None:
    segment = save(tmp_path / "x", b'<seg id="1">one</seg>\n')
    program = (
        "import logging, sys; from pathlib import Path\n"
        "from tandem.data.corpus.public.entry import Archive, Part\n"
        "from tandem.data.corpus.public.unpack import read_pairs\n"
        "part = Part(name='x', split='test', languages=('en', 'de'), archives=(), form='sgm')\n"
        "path = Path(sys.argv[1])\n"
        "print(list(read_pairs(part, [path, path])), logging.root.handlers, logging.root.level)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, segment], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"[('one', 'one')] [] {logging.WARNING}\n"
    assert done.stderr == ""


def test_without_mtdata_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mtdata", None)
    paths = [save(tmp_path / "en", EN), save(tmp_path / "de", DE)]
    with pytest.raises(TandemError, match=r"pip install 'tandem-nmt\[corpora\]'"):
        list(read_pairs(build_part(), paths))
