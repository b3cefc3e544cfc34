from pathlib import Path

import pytest

from tandem.artefact import sha256_file
from tandem.config import Corpus
from tandem.data.corpus.files import CorpusFiles, checksums, find_files
from tandem.errors import TandemError


def found(**corpus: object) -> CorpusFiles:
    return find_files(Corpus.model_validate(corpus), languages=("en", "de"))


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(name)


def test_a_folder_pairs_its_files_by_stem_whatever_the_compression(tmp_path: Path) -> None:
    touch(tmp_path, "news.en.gz", "news.de", "europarl.v7.en", "europarl.v7.de.zst", "README.md")
    assert [path.name for path in found(folder=str(tmp_path)).paths] == [
        "europarl.v7.en",
        "europarl.v7.de.zst",
        "news.en.gz",
        "news.de",
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["news.en"], "holds news in only one of the languages en and de"),
        (["news.en", "news.en.gz", "news.de"], r"both news.en and news.en.gz"),
        (["news.fr"], r"no files that end in \.en and \.de"),
    ],
)
def test_a_folder_that_cannot_be_paired_says_why(tmp_path: Path, names: list[str], message: str) -> None:
    touch(tmp_path, *names)
    with pytest.raises(TandemError, match=message):
        found(folder=str(tmp_path))


def test_a_missing_file_or_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"no file .*absent\.tsv"):
        found(tsv=str(tmp_path / "absent.tsv"))
    with pytest.raises(TandemError, match="no folder .*absent"):
        found(folder=str(tmp_path / "absent"))


def test_checksums_are_remembered_until_the_file_changes(tmp_path: Path) -> None:
    path, cache = tmp_path / "text", tmp_path / "deep" / "sums.json"
    path.write_text("one")
    assert checksums([path], cache=cache) == {path: sha256_file(path)}
    remembered = cache.read_bytes()
    assert checksums([path], cache=cache) == {path: sha256_file(path)}
    assert cache.read_bytes() == remembered
    path.write_text("three")
    assert checksums([path], cache=cache) == {path: sha256_file(path)}


def test_a_damaged_cache_is_ignored(tmp_path: Path) -> None:
    path, cache = tmp_path / "text", tmp_path / "sums.json"
    path.write_text("one")
    cache.write_text('{"torn')
    assert checksums([path], cache=cache) == {path: sha256_file(path)}
