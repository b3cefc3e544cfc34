"""YAML as plain values with places, and a sentence for everything that is not YAML."""

from pathlib import Path

import pytest

from tandem.config.document import parse_yaml, read_document
from tandem.errors import TandemError


def parsed(text: str) -> object:
    return parse_yaml(text, origin="r.yaml", numbered=True).values


def failure(text: str) -> str:
    with pytest.raises(TandemError) as caught:
        parse_yaml(text, origin="r.yaml", numbered=True)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1_000_000", 1_000_000),
        ("010", 10),
        ("1.5", 1.5),
        ("1e-9", 1e-9),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("no", "no"),
        ("tRuE", "tRuE"),
        ("'5'", "5"),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("ä: [1, {b: x}]", {"ä": [1, {"b": "x"}]}),
    ],
)
def test_plain_values_follow_yaml_1_2(text: str, value: object) -> None:
    found = parsed(text)
    assert found == value
    assert type(found) is type(value)


def test_every_key_and_item_knows_its_line() -> None:
    document = parse_yaml("a:\n  b:\n    - 1\n    - c: 2\n", origin="r.yaml", numbered=True)
    assert document.places == {
        (): "r.yaml",
        ("a",): "r.yaml:1",
        ("a", "b"): "r.yaml:2",
        ("a", "b", 0): "r.yaml:3",
        ("a", "b", 1): "r.yaml:4",
        ("a", "b", 1, "c"): "r.yaml:4",
    }


def test_what_is_not_written_has_the_place_of_what_was_to_hold_it() -> None:
    document = parse_yaml("a:\n  b: 1\n", origin="r.yaml", numbered=True)
    assert document.place(("a", "x", 3)) == "r.yaml:1"
    assert document.place(("y",)) == "r.yaml"


def test_anchors_are_expanded() -> None:
    assert parsed("a: &x {n: 1}\nb: *x\n") == {"a": {"n": 1}, "b": {"n": 1}}


def test_a_key_written_twice_is_an_error_that_names_both_lines() -> None:
    assert (
        failure("a:\n  b: 1\n  b: 2\n") == "r.yaml:3: 'a.b' is written twice, first at r.yaml:2; take one out"
    )


def test_an_anchor_bomb_stops_at_a_bound() -> None:
    levels = "".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert "more than 10000 values" in failure(f"k0: &k0 x\n{levels}")


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "[" * 5000, "{a: " * 5000], ids=["itself", "lists", "sections"]
)
def test_endless_nesting_is_one_sentence(text: str) -> None:
    assert "nested too deeply" in failure(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n\tb: 1\n", "r.yaml:2:1: a tab where YAML wants spaces"),
        ("a: [1, 2\nb: 3\n", "r.yaml:2:2: this is not YAML"),
        ("a: 1\n---\nb: 2\n", "r.yaml:2:1: this is not YAML"),
        ("a: *nobody\n", "r.yaml:1:4: this is not YAML"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", "r.yaml:2: a recipe uses no tags"),
        ("? [1]\n: 2\n", "r.yaml:1: a key must be a word"),
        ("a: 1\nb: \x07\n", "r.yaml:2: character U+0007"),
        ('a: "\\0"\n', "r.yaml:1: '\\x00' holds a character that is no text"),
        ('a: "\\ud800"\n', "r.yaml:1: '\\ud800' holds a character that is no text"),
    ],
)
def test_text_that_is_not_a_recipe_is_one_sentence_with_its_line(text: str, words: str) -> None:
    message = failure(text)
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"- a\n- b\n", "holds a list at its top"),
        (b"hello\n", "holds a single value at its top"),
        (b"a: 1\nb: \xff\n", ":2: this line is not UTF-8"),
        (b"#" * 300_000, "is larger than 256 KiB"),
    ],
    ids=["empty", "comment", "list", "scalar", "encoding", "size"],
)
def test_a_file_that_is_no_recipe_is_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_bytes(content)
    with pytest.raises(TandemError) as caught:
        read_document(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(TandemError, match=r"There is no recipe .*absent\.yaml"):
        read_document(tmp_path / "absent.yaml")
    with pytest.raises(TandemError, match="is a folder"):
        read_document(tmp_path)


def test_a_byte_order_mark_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: x\r\n")
    document = read_document(path)
    assert document.values == {"a": 1, "b": "x"}
    assert document.places["b",] == f"{path}:2"
