import math

import pytest

from tandem.observe.imports.literal import read_literal

PRINTED = """{'a': 1,
 'b': {'c': 2.5, 'd': [1, 'two', None], 'e': {}},
 'f': <class 'somewhere.Thing'>,
 'g': <function policy at 0x7f>,
 'h': True,
 'i': ('one '
       'two'),
 'j': -1e-09}"""


def test_a_printed_dictionary_is_read_whole() -> None:
    assert read_literal(PRINTED) == {
        "a": 1,
        "b": {"c": 2.5, "d": [1, "two", None], "e": {}},
        "f": "<class 'somewhere.Thing'>",
        "g": "<function policy at 0x7f>",
        "h": True,
        "i": ["one ", "two"],
        "j": -1e-09,
    }


def test_what_stands_before_a_tear_stays_and_nothing_is_made_up() -> None:
    whole = read_literal(PRINTED)
    for place in range(len(PRINTED)):
        for name, value in read_literal(PRINTED[:place]).items():
            if name == "b":
                held = whole["b"]
                assert isinstance(value, dict)
                assert isinstance(held, dict)
                assert value.items() <= held.items()
            else:
                assert value == whole[name]


@pytest.mark.parametrize(
    "text", ["", "no", "{", "{'a'", "{'a':", "{'a': 12", "{1: 2}", "{'a': 1.2.3}", "{'a': 0x7f}"]
)
def test_what_is_no_dictionary_holds_no_number(text: str) -> None:
    assert all(not isinstance(value, int | float) for value in read_literal(text).values())


def test_depth_is_bounded() -> None:
    assert list(read_literal("{'a': " * 10_000 + "1" + "}" * 10_000)) == ["a"]
    assert read_literal("{'a': " + "[" * 10_000) == {}


def test_numbers_that_are_none_are_read() -> None:
    found = read_literal("{'a': nan, 'b': inf}")
    assert isinstance(found["a"], float)
    assert math.isnan(found["a"])
    assert found["b"] == math.inf
