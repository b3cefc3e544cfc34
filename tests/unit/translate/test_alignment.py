"""Alignment as places in both texts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.data.subword.learn import Subword
from tandem.translate.alignment import Link, build_links, locate_words, piece_spans


@pytest.mark.parametrize("text", ["the cat sleeps", "a ä 漢 😀 z", "", "Müller-Straße 5."])
def test_pieces_cover_the_text_from_left_to_right(subword: Subword, text: str) -> None:
    ids = subword.source.encode([text]).ids.tolist()
    read = subword.source.decode(ids)
    spans = piece_spans(subword.source.decode, ids, read)
    assert len(spans) == len(ids)
    assert "".join(read[start:end] for start, end in spans) == read.replace(" ", "")
    assert all(before[1] <= behind[0] for before, behind in pairwise(spans))


def test_places_of_mended_text_are_found_in_the_line_as_it_was_given() -> None:
    given_line, mended = "  The\x00  cat eats   ﬁsh with \u200b the   dog", "The cat eats fish with the dog"
    locate, end = locate_words(mended, given_line)
    for word, expected in {
        "The": "The",
        "cat": "cat",
        "at": "at",
        "fish": "ﬁsh",
        "the": "the",
        "dog": "dog",
    }.items():
        start = mended.index(word)
        assert given_line[slice(*locate((start, start + len(word))))] == expected
    assert end == len(given_line)


def test_a_word_is_not_found_inside_another() -> None:
    line = "caf&eacute; a dog"
    locate, _ = locate_words("café a dog", line)
    assert [line[slice(*locate(span))] for span in ((0, 4), (5, 6), (7, 10))] == ["caf&eacute;", "a", "dog"]


def test_parts_of_a_line_are_found_one_after_another() -> None:
    line = "the cat. the cat."
    _, end = locate_words("the cat.", line)
    locate, _ = locate_words("the cat.", line, start=end)
    assert locate((0, 3)) == (9, 12)


@given(text=st.text(max_size=30), line=st.text(max_size=30), data=st.data())
def test_any_place_is_mapped_into_the_line(text: str, line: str, data: st.DataObject) -> None:
    locate, end = locate_words(text, line)
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    first, last = locate((start, stop))
    assert 0 <= first <= last
    assert 0 <= end <= len(line)


def test_pieces_are_widened_to_words_and_links_told_once() -> None:
    source, target = "the houses", "die Häuser, ja"
    links = build_links(
        [((4, 6), (4, 6)), ((6, 10), (6, 10)), ((4, 10), (10, 11))], source=source, target=target
    )
    assert links == (Link((4, 10), (4, 10)), Link((4, 10), (10, 11)))


def test_scripts_without_spaces_are_not_widened() -> None:
    assert build_links([((0, 3), (1, 2))], source="cat", target="小猫睡觉") == (Link((0, 3), (1, 2)),)


def test_what_cannot_be_seen_has_no_link() -> None:
    assert build_links([((0, 0), (0, 1)), ((0, 1), (1, 1))], source="a", target="b") == ()
