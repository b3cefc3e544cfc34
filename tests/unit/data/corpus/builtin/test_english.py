"""English morphology against tables of known forms."""

import pytest

from tandem.data.corpus.builtin.english import (
    comparative_of,
    indefinite_article,
    ing_of,
    plural_of,
    possessive_of,
    superlative_of,
    verb_from_parts,
)
from tandem.data.corpus.builtin.numerals import clock_time, english_cardinal, german_cardinal, grouped


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("book", "a"),
        ("apple", "an"),
        ("honest man", "an"),
        ("university", "a"),
        ("umbrella", "an"),
        ("hour", "an"),
    ],
)
def test_a_or_an_goes_by_the_sound(word: str, article: str) -> None:
    assert indefinite_article(word) == article


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("dog", "dogs"), ("bus", "buses"), ("church", "churches"), ("city", "cities"), ("boy", "boys")],
)
def test_regular_plurals(noun: str, plural: str) -> None:
    assert plural_of(noun) == plural


@pytest.mark.parametrize(
    ("base", "ing"),
    [("read", "reading"), ("write", "writing"), ("run", "running"), ("lie", "lying"), ("forget", "forgetting"),
     ("travel", "travelling"), ("open", "opening"), ("visit", "visiting"), ("draw", "drawing"), ("see", "seeing")],
)  # fmt: skip
def test_ing_forms(base: str, ing: str) -> None:
    assert ing_of(base) == ing


@pytest.mark.parametrize(
    ("parts", "third", "past", "participle", "particle"),
    [
        ("play", "plays", "played", "played", ""),
        ("carry", "carries", "carried", "carried", ""),
        ("watch", "watches", "watched", "watched", ""),
        ("go went gone", "goes", "went", "gone", ""),
        ("have had had", "has", "had", "had", ""),
        ("get got got +up", "gets", "got", "got", "up"),
        ("hug", "hugs", "hugged", "hugged", ""),
    ],
)
def test_verb_forms(parts: str, third: str, past: str, participle: str, particle: str) -> None:
    verb = verb_from_parts(parts)
    assert (verb.third, verb.past, verb.participle, verb.particle) == (third, past, participle, particle)


@pytest.mark.parametrize(
    ("adjective", "comparative", "superlative"),
    [
        ("big", "bigger", "biggest"),
        ("nice", "nicer", "nicest"),
        ("happy", "happier", "happiest"),
        ("expensive", "more expensive", "most expensive"),
        ("quiet", "quieter", "quietest"),
    ],
)
def test_comparison(adjective: str, comparative: str, superlative: str) -> None:
    assert (comparative_of(adjective), superlative_of(adjective)) == (comparative, superlative)


def test_possessives() -> None:
    assert possessive_of("the teachers", is_plural=True) == "the teachers'"
    assert possessive_of("the actress", is_plural=False) == "the actress's"
    assert possessive_of("the children", is_plural=True) == "the children's"


def test_numbers_are_words_up_to_twelve_and_digits_beyond() -> None:
    assert (german_cardinal(12), english_cardinal(12)) == ("zwölf", "twelve")
    assert (german_cardinal(13), english_cardinal(13)) == ("13", "13")
    assert grouped(12_500) == ("12.500", "12,500")


@pytest.mark.parametrize(
    ("quarters", "german", "english"),
    [
        (4, "um ein Uhr", "at one o'clock"),
        (29, "um Viertel nach sieben", "at a quarter past seven"),
        (30, "um halb acht", "at half past seven"),
        (31, "um Viertel vor acht", "at a quarter to eight"),
        (2, "um halb eins", "at half past twelve"),
        (47, "um Viertel vor zwölf", "at a quarter to twelve"),
    ],
)
def test_the_clock(quarters: int, german: str, english: str) -> None:
    assert clock_time(quarters) == (german, english)
