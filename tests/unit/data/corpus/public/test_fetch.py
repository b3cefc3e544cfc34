"""From a name to a folder of aligned text, through a real server."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tandem.artefact import read_manifest, verify
from tandem.data.corpus.public.entry import Archive, Part, PublicCorpus
from tandem.data.corpus.public.fetch import KIND, VERSION, fetch_corpus
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tests.unit.data.corpus.public.conftest import Packer, Site, Spoken


@pytest.fixture
def corpus(site: Site, pack: Packer) -> PublicCorpus:
    """Two parts of training text, one of them with its sides the other way round, and a test set."""
    tgz = Archive(url=site.publish("train.tgz", pack.tgz({"x.de": b"eins\nzwei\n", "x.en": b"one\ntwo\n"})))
    table = Archive(url=site.publish("more.tsv.gz", gzip.compress(b"three\tdrei\n")))
    sides = [
        Archive(url=site.publish("test.en.gz", gzip.compress(b"caf\xe9\n"))),
        Archive(url=site.publish("test.de.gz", gzip.compress("a\u2028b\n".encode()))),
    ]
    return PublicCorpus(
        name="little",
        folder="little",
        summary="a little text",
        licence="CC0",
        languages=("en", "de"),
        parts=(
            Part(
                name="first",
                split="train",
                languages=("de", "en"),
                archives=(tgz,),
                members=("x.de", "x.en"),
                pairs=2,
            ),
            Part(name="second", split="train", languages=("en", "de"), archives=(table,), form="tsv"),
            Part(name="third", split="test", languages=("en", "de"), archives=tuple(sides)),
        ),
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_corpus_becomes_one_file_a_language_and_split(
    corpus: PublicCorpus, tmp_path: Path, cache: Path
) -> None:
    fetched = fetch_corpus(corpus, tmp_path / "corpora" / "little", cache=cache)
    files = contents(fetched.folder)
    assert files.keys() == {"train.en", "train.de", "test.en", "test.de", "README.md", "manifest.json"}
    assert files["train.en"] == b"one\ntwo\nthree\n"
    assert files["train.de"] == b"eins\nzwei\ndrei\n"
    assert files["test.en"] == b"caf\xe9\n"
    assert files["test.de"] == "a\u2028b\n".encode()
    assert fetched.pairs() == {"train": 3, "test": 1}
    assert not fetched.was_there


def test_the_folder_says_where_its_text_came_from(corpus: PublicCorpus, tmp_path: Path, cache: Path) -> None:
    folder = fetch_corpus(corpus, tmp_path / "little", cache=cache).folder
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    verify(folder, manifest)
    assert manifest.facts["licence"] == "CC0"
    assert manifest.facts["parts"] == [
        {"name": "first", "split": "train", "pairs": 2},
        {"name": "second", "split": "train", "pairs": 1},
        {"name": "third", "split": "test", "pairs": 1},
    ]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    archives = manifest.facts["archives"]
    assert isinstance(archives, list)
    assert len(archives) == 4
    for archive in archives:
        assert isinstance(archive, dict)
        assert f"| {archive['url']} | {archive['bytes']:,} | {archive['sha256']} |" in readme


def test_what_is_there_already_is_left_alone(
    corpus: PublicCorpus, site: Site, tmp_path: Path, cache: Path
) -> None:
    first = fetch_corpus(corpus, tmp_path / "little", cache=cache)
    before = contents(first.folder)
    asked = len(site.requests)
    again = fetch_corpus(replace(corpus, languages=("de", "en")), tmp_path / "little", cache=cache)
    assert again.was_there
    assert again.pairs() == first.pairs()
    assert contents(first.folder) == before
    assert len(site.requests) == asked


def test_another_folder_is_filled_from_the_cache_with_the_same_bytes(
    corpus: PublicCorpus, site: Site, tmp_path: Path, cache: Path
) -> None:
    first = fetch_corpus(corpus, tmp_path / "one", cache=cache)
    asked = len(site.requests)
    second = fetch_corpus(corpus, tmp_path / "two", cache=cache)
    assert contents(second.folder) == contents(first.folder)
    assert len(site.requests) == asked


def test_a_fault_leaves_no_folder_and_the_next_run_mends_it(
    corpus: PublicCorpus, site: Site, tmp_path: Path, cache: Path
) -> None:
    good = site.files["/test.de.gz"]
    site.files["/test.de.gz"] = gzip.compress(b"one line\nand another\n")
    with pytest.raises(TandemError, match="sides of third do not match"):
        fetch_corpus(corpus, tmp_path / "little", cache=cache)
    assert not (tmp_path / "little").exists()
    for path in (cache / "archives").glob("*test.de.gz*"):
        path.unlink()
    site.files["/test.de.gz"] = good
    assert fetch_corpus(corpus, tmp_path / "little", cache=cache).pairs() == {"train": 3, "test": 1}


def test_a_part_without_text_is_an_error(
    corpus: PublicCorpus, site: Site, tmp_path: Path, cache: Path
) -> None:
    site.files["/more.tsv.gz"] = gzip.compress(b"")
    with pytest.raises(TandemError, match="second holds no text in en-de"):
        fetch_corpus(corpus, tmp_path / "little", cache=cache)


def test_a_count_that_differs_from_the_catalogue_is_told(
    corpus: PublicCorpus, tmp_path: Path, cache: Path, spoken: Spoken
) -> None:
    parts = (replace(corpus.parts[0], pairs=7), *corpus.parts[1:])
    fetch_corpus(replace(corpus, parts=parts), tmp_path / "little", cache=cache, progress=spoken)
    assert spoken.said == ["note: first has 2 pairs, while the catalogue says 7"]


def test_a_folder_of_somebody_else_is_not_replaced(corpus: PublicCorpus, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "little").mkdir()
    (tmp_path / "little" / "thesis.tex").write_text("mine")
    with pytest.raises(TandemError, match="was not made by Tandem"):
        fetch_corpus(corpus, tmp_path / "little", cache=cache)
    assert (tmp_path / "little" / "thesis.tex").read_text() == "mine"
