"""mtdata's index: found, searched and understood, without loading it."""

import json
from importlib import metadata
from pathlib import Path

import pytest

from tandem.data.corpus.public.index import find_indexed, search_index
from tandem.errors import TandemError

ENTRIES = [
    {
        "did": "OPUS-books-v1-deu-eng",
        "url": "https://corpora.invalid/de-en.txt.zip",
        "ext": "zip",
        "in_ext": "txt",
        "in_paths": ["*.de", "*.en"],
    },
    {
        "did": "Lab-flores_devtest-1-eng-fra",
        "url": "https://corpora.invalid/x.tsv.gz",
        "ext": "tsv.gz",
        "cols": [2, 0],
    },
    {
        "did": "Uni-train-1-eng-vie",
        "url": ["https://corpora.invalid/a.en", "https://corpora.invalid/a.vi"],
        "ext": "txt",
    },
    {
        "did": "ELRC-wikipedia-1-deu-eng",
        "url": "https://corpora.invalid/x.zip",
        "ext": "zip",
        "in_ext": "tmx",
        "in_paths": ["a.tmx"],
    },
    {
        "did": "Statmt-news_crawl-2020-deu",
        "url": "https://corpora.invalid/x.gz",
        "ext": "de.gz",
        "in_ext": "txt",
    },
]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / "mtdata" / f"index-{metadata.version('mtdata')}.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(entry) + "\n" for entry in ENTRIES), encoding="utf-8")
    return tmp_path


def test_words_and_languages_narrow_the_search(cache: Path) -> None:
    def found(*words: str, languages: tuple[str, str] | None = None) -> list[object]:
        return [entry["did"] for entry in search_index(cache, words, languages=languages)]

    assert len(found()) == 4
    assert found("BOOKS", "opus") == ["OPUS-books-v1-deu-eng"]
    assert found(languages=("en", "de")) == ["OPUS-books-v1-deu-eng", "ELRC-wikipedia-1-deu-eng"]
    assert found("books", languages=("en", "fr")) == []


def test_two_files_of_an_archive(cache: Path) -> None:
    corpus = find_indexed("OPUS-books-v1-deu-eng", cache, languages=("en", "de"))
    [part] = corpus.parts
    assert corpus.languages == ("en", "de")
    assert part.languages == ("de", "en")
    assert (part.form, part.split, part.members) == ("txt", "train", ("*.de", "*.en"))


def test_columns_and_the_split_of_a_test_set(cache: Path) -> None:
    [part] = find_indexed("Lab-flores_devtest-1-eng-fra", cache).parts
    assert (part.form, part.columns, part.split, part.languages) == ("tsv", (2, 0), "test", ("en", "fr"))


def test_one_address_a_side(cache: Path) -> None:
    [part] = find_indexed("Uni-train-1-eng-vie", cache).parts
    assert [archive.url[-2:] for archive in part.archives] == ["en", "vi"]


@pytest.mark.parametrize("name", ["ELRC-wikipedia-1-deu-eng", "Statmt-news_crawl-2020-deu"])
def test_a_form_that_is_not_read_is_answered_with_a_way_out(cache: Path, name: str) -> None:
    with pytest.raises(TandemError, match=f"mtdata get -l .* -tr {name}"):
        find_indexed(name, cache)


def test_an_unknown_id_and_wrong_languages_are_one_sentence_each(cache: Path) -> None:
    with pytest.raises(TandemError, match="mtdata has no corpus 'OPUS-x-1-deu-eng'"):
        find_indexed("OPUS-x-1-deu-eng", cache)
    with pytest.raises(TandemError, match="is in de-en, not in en-fr"):
        find_indexed("OPUS-books-v1-deu-eng", cache, languages=("en", "fr"))
    with pytest.raises(TandemError, match="'qqqx' is not a language code"):
        list(search_index(cache, [], languages=("en", "qqqx")))


def test_without_mtdata_the_cure_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(TandemError, match=r"pip install 'tandem-nmt\[corpora\]'"):
        list(search_index(cache, []))
