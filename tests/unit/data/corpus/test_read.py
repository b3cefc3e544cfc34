from pathlib import Path

import pytest

from tandem.config import Corpus
from tandem.data.corpus import read
from tandem.data.corpus.files import find_files
from tandem.data.corpus.read import RawChunk, read_chunks
from tandem.errors import TandemError

ENGLISH = [f"This is sentence number {n} " + "and so on " * (n * 37 % 11) for n in range(400)]
GERMAN = [f"Dies ist Satz Nummer {n} " + "und so weiter " * (n * 37 % 11) for n in range(400)]


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def chunks_of(**corpus: object) -> list[RawChunk]:
    files = find_files(Corpus.model_validate(corpus), languages=("en", "de"))
    return list(read_chunks(files, seed=1))


def two_files(tmp_path: Path, english: list[str], german: list[str]) -> dict[str, object]:
    return {
        "source": str(write_lines(tmp_path / "news.en", english)),
        "target": str(write_lines(tmp_path / "news.de", german)),
    }


def test_chunks_hold_all_lines_in_order_whatever_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = two_files(tmp_path, ENGLISH, GERMAN)
    whole = chunks_of(**corpus)
    monkeypatch.setattr(read, "CHUNK_LINES", 30)
    monkeypatch.setattr(read, "CHUNK_BYTES", 2_000)
    small = chunks_of(**corpus)
    assert len(whole) == 1
    assert len(small) > 400 // 30
    assert b"".join(chunk.source for chunk in small) == whole[0].source
    assert b"".join(chunk.target or b"" for chunk in small) == whole[0].target
    assert [chunk.first_line for chunk in small[:2]] == [1, small[0].lines + 1]


@pytest.mark.parametrize("gap", [0, 57, 250, 399])
def test_unequal_sides_stop_with_counts_and_the_line_where_they_part(tmp_path: Path, gap: int) -> None:
    with pytest.raises(TandemError, match=r"news\.en has 399 lines.*news\.de has 400") as caught:
        chunks_of(**two_files(tmp_path, ENGLISH[:gap] + ENGLISH[gap + 1 :], GERMAN))
    line = int(str(caught.value).split("part at line ")[1].split(":")[0])
    assert abs(line - (gap + 1)) <= 1


def test_several_missing_lines_on_the_other_side_are_placed_too(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"400 lines.*has 395; they seem to part at line 20\d"):
        chunks_of(**two_files(tmp_path, ENGLISH, GERMAN[:202] + GERMAN[207:]))


@pytest.mark.parametrize("side", ["source", "target"])
def test_an_empty_file_is_named(tmp_path: Path, side: str) -> None:
    corpus = two_files(tmp_path, ENGLISH, GERMAN)
    Path(str(corpus[side])).write_bytes(b"")
    with pytest.raises(TandemError, match=r"news\.(en|de) is empty"):
        chunks_of(**corpus)


def test_a_tsv_is_one_column_of_pairs(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "pairs.tsv", ["one\teins", "two\tzwei"])
    (chunk,) = chunks_of(tsv=str(path))
    assert (chunk.source, chunk.target, chunk.lines) == (b"one\teins\ntwo\tzwei\n", None, 2)


def test_a_folder_is_read_file_after_file(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_lines(tmp_path / f"{name}.en", [f"{name} in English"])
        write_lines(tmp_path / f"{name}.de", [f"{name} auf Deutsch"])
    chunks = chunks_of(folder=str(tmp_path))
    assert [chunk.source for chunk in chunks] == [b"a in English\n", b"b in English\n"]
    assert [chunk.first_line for chunk in chunks] == [1, 2]


def test_the_builtin_corpus_comes_as_chunks_too() -> None:
    (chunk,) = chunks_of(builtin={"pairs": 50, "split": "train"})
    assert chunk.lines == 50
    assert chunk.target is not None
    assert chunk.source.count(b"\n") == chunk.target.count(b"\n") == 50
