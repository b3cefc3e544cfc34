from collections.abc import Mapping

import pytest

from tandem.config import CleanSection
from tandem.data.corpus.filters import (
    Candidate,
    HeldOutSentences,
    build_filters,
    build_menders,
    compose_unicode,
    held_out_key,
    strip_control,
    unescape_entities,
)

NOTHING_HELD_OUT: dict[str, HeldOutSentences] = {}


def first_objection(
    source: str, target: str, *, held_out: Mapping[str, HeldOutSentences] = NOTHING_HELD_OUT, **rules: object
) -> str | None:
    section = CleanSection.model_validate(rules)
    pair = Candidate(source, target, source.split(), target.split())
    filters = build_filters(section, held_out, languages=("en", "de"), segmented=False)
    return next((name for name, judge in filters if judge(pair)), None)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("The cat sleeps.", "Die Katze schläft.", None),
        ("", "Die Katze schläft.", "empty side"),
        ("The cat sleeps.", "", "empty side"),
        ("See <b>here</b>.", "Siehe hier.", "left-over markup"),
        ("See here.", "Siehe <br/> hier.", "left-over markup"),
        ("word " * 79 + "word", "Wort " * 79 + "Wort", None),
        ("word " * 81, "Wort " * 80, "not 1–80 words"),
        ("word", "Wort " * 9, None),
        ("word", "Wort " * 10, "word ratio over 9"),
        ("a " + "x" * 40, "ein Wort", None),
        ("a " + "x" * 41, "ein Wort", "word over 40 characters"),
        ("Bonn 2003", "Bonn 2003", "identical sides"),
        ("5 < 7 and 7 > 5", "5 < 7 und 7 > 5", None),
    ],
)
def test_the_first_filter_that_objects_names_the_reason(source: str, target: str, reason: str | None) -> None:
    assert first_objection(source, target) == reason


def test_every_filter_can_be_switched_off() -> None:
    assert first_objection("See <b>here</b>.", "Siehe hier.", markup=False) is None
    assert first_objection("Bonn", "Bonn", drop_identical=False) is None


@pytest.mark.parametrize(
    ("source", "target"), [("The CAT sleeps.", "Etwas anderes."), ("Other words.", "die katze schläft.")]
)
def test_overlap_on_either_side_counts_whatever_the_case(source: str, target: str) -> None:
    held_out = HeldOutSentences(
        source=frozenset([held_out_key("The cat sleeps.")]),
        target=frozenset([held_out_key("Die Katze schläft.")]),
    )
    assert first_objection(source, target, held_out={"valid": held_out}) == "also in valid"
    assert first_objection(source, target, held_out={"valid": held_out}, drop_held_out_overlap=False) is None


def test_the_language_filter_drops_what_is_surely_another_language() -> None:
    german = "Die Abgeordneten haben gestern Abend lange über den Vorschlag der Kommission gesprochen."
    english = "The members talked about the proposal of the commission for a long time last night."
    french = "Les députés ont longuement parlé de la proposition de la commission hier soir."
    assert first_objection(english, german, language_id=True) is None
    assert first_objection(english, french, language_id=True) == "wrong language"
    assert first_objection(german, english, language_id=True) == "wrong language"
    assert first_objection("Anna 12", "Anna 13", language_id=True) is None


def test_nfc_composes_letters_and_accents() -> None:
    assert compose_unicode("Tu\u0308r") == "Tür"
    assert compose_unicode("Tür") == "Tür"


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("a\x00b", "ab"),
        ("a\u2028b", "a b"),
        ("a\u0085b", "a b"),
        ("a\tb", "a b"),
        ("so\u00adfort", "sofort"),
        ("\ufeffWort", "Wort"),
        ("a\u200bb", "ab"),
        ("نمی\u200cخواهم", "نمی\u200cخواهم"),
        ("10\u00a0000", "10 000"),
        ("\ue000x", "x"),
    ],
)
def test_control_characters_go_and_separators_become_spaces(dirty: str, clean: str) -> None:
    assert strip_control(dirty) == clean


def test_entities_become_characters() -> None:
    assert unescape_entities("R&amp;D &quot;now&quot; & then") == 'R&D "now" & then'


def test_segmented_text_keeps_its_entities_and_tags() -> None:
    section = CleanSection()
    names = [name for name, _ in build_menders(section, segmented=True)]
    assert "markup entities unescaped" not in names
    filters = build_filters(section, NOTHING_HELD_OUT, languages=("en", "de"), segmented=True)
    assert "left-over markup" not in [name for name, _ in filters]
