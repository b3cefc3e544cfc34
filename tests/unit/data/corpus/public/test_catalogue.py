"""The catalogue: names that can be typed, facts that hold together."""

import re

import pytest

from tandem.data.corpus.public.catalogue import CATALOGUE, find_corpus, recipes_with
from tandem.data.corpus.public.checksums import CHECKSUMS
from tandem.data.corpus.public.entry import parse_languages
from tandem.data.corpus.public.listing import Listing
from tandem.errors import TandemError

EVERY = pytest.mark.parametrize("listing", CATALOGUE, ids=lambda listing: listing.name)


@EVERY
def test_every_corpus_can_be_built_in_all_its_languages(listing: Listing) -> None:
    for pair in listing.languages:
        corpus = listing.build(parse_languages(pair))
        for part in corpus.parts:
            assert set(part.languages) == set(corpus.languages)
            assert len(part.members or part.archives) == (1 if part.form == "tsv" else 2)
            assert not re.search("[{}]", " ".join([*part.members, *(a.url for a in part.archives)]))
            assert all(archive.url.startswith(("http://", "https://")) for archive in part.archives)


@EVERY
def test_each_pair_of_languages_has_a_folder_of_its_own(listing: Listing) -> None:
    folders = [listing.build(parse_languages(pair)).folder for pair in listing.languages]
    assert len(set(folders)) == len(folders)


def test_names_can_be_typed_and_are_not_taken_for_ids_of_mtdata() -> None:
    names = [listing.name for listing in CATALOGUE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+){0,3}", name) for name in names)


def test_no_checksum_is_left_without_its_archive() -> None:
    corpora = [listing.build(parse_languages(pair)) for listing in CATALOGUE for pair in listing.languages]
    urls = {archive.url for corpus in corpora for archive in corpus.archives}
    assert CHECKSUMS.keys() <= urls
    assert all(size > 0 and re.fullmatch("[0-9a-f]{64}", sha256) for size, sha256 in CHECKSUMS.values())


def test_the_set_of_attention_is_all_you_need() -> None:
    corpus = find_corpus("wmt14-en-de")
    assert corpus.languages == ("en", "de")
    assert [part.name for part in corpus.parts if part.split == "train"] == [
        "europarl-v7",
        "commoncrawl",
        "news-commentary-v9",
    ]
    assert corpus.pairs("train") == 4_520_620
    assert corpus.pairs("valid") == 3_000
    assert corpus.pairs("test") == 3_003
    assert all(archive.sha256 for archive in corpus.archives)
    assert corpus.download_bytes == sum(archive.size_bytes or 0 for archive in corpus.archives)


def test_a_direction_has_its_own_test_set_where_the_publisher_has_one() -> None:
    english_first = find_corpus("newstest2019", ("en", "de"))
    german_first = find_corpus("newstest2019", ("de", "en"))
    assert english_first.parts[0].members[0] == "dev/newstest2019-ende-src.en.sgm"
    assert german_first.parts[0].members[0] == "dev/newstest2019-deen-src.de.sgm"


def test_languages_may_be_asked_for_in_either_order() -> None:
    corpus = find_corpus("europarl-v7", ("en", "fr"))
    assert corpus.languages == ("en", "fr")
    assert corpus.parts[0].languages == ("fr", "en")
    assert corpus.folder == "europarl-v7-en-fr"


def test_what_is_not_known_is_none_not_a_guess() -> None:
    corpus = find_corpus("europarl-v10")
    assert corpus.download_bytes is None
    assert corpus.pairs("train") is None
    assert corpus.pairs("valid") == 0


def test_recipes_name_the_corpora_they_hold() -> None:
    by_name = {listing.name: listing for listing in CATALOGUE}
    assert recipes_with(by_name["commoncrawl"]) == ("wmt14-en-de", "wmt16-en-de")
    assert recipes_with(by_name["news-commentary-v9"]) == ("wmt14-en-de",)
    assert recipes_with(by_name["tatoeba"]) == ()


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(TandemError, match="no public corpus 'multi30': did you mean multi30k"):
        find_corpus("multi30")
    with pytest.raises(TandemError, match="tandem data list"):
        find_corpus("qqq")


def test_languages_that_a_corpus_lacks_are_answered_with_those_it_has() -> None:
    with pytest.raises(
        TandemError, match="multi30k has no en-fi: choose --languages from en-de, en-fr, en-cs"
    ):
        find_corpus("multi30k", ("en", "fi"))


@pytest.mark.parametrize("text", ["en", "en-de-fr", "en-", "../x-de", "en-d e", "en–de"])
def test_a_pair_of_languages_is_two_codes(text: str) -> None:
    with pytest.raises(TandemError, match="as in en-de"):
        parse_languages(text)
