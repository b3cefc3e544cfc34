"""Overrides: values laid over a document, and where they came from."""

from typing import Any

import pytest

from tandem.config.document import Document, parse_yaml
from tandem.config.overrides import overridden
from tandem.errors import TandemError


def document() -> Document:
    return parse_yaml("a:\n  b: 1\n  c: 2\nl:\n  - {x: 1}\n  - {x: 2}\n", origin="r.yaml", numbered=True)


@pytest.mark.parametrize(
    ("override", "values"),
    [
        ("a.b=7", {"a": {"b": 7, "c": 2}, "l": [{"x": 1}, {"x": 2}]}),
        ("a.b=", {"a": {"b": None, "c": 2}, "l": [{"x": 1}, {"x": 2}]}),
        ("a.b=x=y", {"a": {"b": "x=y", "c": 2}, "l": [{"x": 1}, {"x": 2}]}),
        ("l.1.x=[3, z]", {"a": {"b": 1, "c": 2}, "l": [{"x": 1}, {"x": [3, "z"]}]}),
        ("l.2.y=3", {"a": {"b": 1, "c": 2}, "l": [{"x": 1}, {"x": 2}, {"y": 3}]}),
        ("l=[]", {"a": {"b": 1, "c": 2}, "l": []}),
        ("m.0.y=1", {"a": {"b": 1, "c": 2}, "l": [{"x": 1}, {"x": 2}], "m": [{"y": 1}]}),
        ("a={d: 1}", {"a": {"d": 1}, "l": [{"x": 1}, {"x": 2}]}),
        ("a.b.c=1", {"a": {"b": {"c": 1}, "c": 2}, "l": [{"x": 1}, {"x": 2}]}),
    ],
)
def test_a_value_is_laid_over_the_document(override: str, values: dict[str, Any]) -> None:
    assert overridden(document(), override).values == values


def test_the_document_itself_stays_as_it_was() -> None:
    before = document()
    overridden(before, "l.0.x=5")
    assert before == document()


def test_only_what_was_overridden_comes_from_the_command_line() -> None:
    places = overridden(document(), "n.m={k: 1}").places
    assert {loc for loc, place in places.items() if place == "command line"} == {
        ("n",),
        ("n", "m"),
        ("n", "m", "k"),
    }
    assert overridden(document(), "a.b=3").places["a",] == "r.yaml:1"


def test_places_inside_a_replaced_value_are_forgotten() -> None:
    places = overridden(document(), "l=[{y: 1}]").places
    assert ("l", 0, "x") not in places
    assert ("l", 1) not in places
    assert places["l", 0, "y"] == "command line"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("a.b", "is no override; write key=value"),
        ("=5", "is no override; write key=value"),
        ("a..b=5", "is no override; write key=value"),
        ("a.b=[1", "'a.b=[1': this is not YAML"),
        ("l.x=5", "l is a list; name an item of it, as in l.0.x"),
        ("l.9.x=5", "l.9 is past the end of a list of 2; the next item is l.2"),
        ("a.b=\udcff", "character U+DCFF is not allowed in YAML"),
    ],
)
def test_a_wrong_override_is_one_sentence(override: str, words: str) -> None:
    with pytest.raises(TandemError) as caught:
        overridden(document(), override)
    assert str(caught.value).startswith("command line: ")
    assert words in str(caught.value)
