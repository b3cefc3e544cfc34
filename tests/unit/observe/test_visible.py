import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.observe.visible import visible, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\rc\x00", "a\\nb\\rc\\x00"),
        ("a\u2028b\x85c", "a\\u2028b\\x85c"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["Größe, naïve, 中文", "10\u00a0000", "می\u200cخواهم"])
def test_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters()))
def test_every_text_can_be_written_on_one_line(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    shown.encode()


@given(st.text(st.characters()))
def test_lines_stay_lines_and_nothing_in_them_steers(text: str) -> None:
    shown = visible_lines(text)
    assert shown.count("\n") == text.count("\n")
    assert not any(letter in shown for letter in "\x1b\x9b\r\u202e")
    shown.encode()


def test_columns_stay_columns() -> None:
    assert visible_lines("a\tb\n\x1b[2Jc") == "a\tb\n\\x1b[2Jc"
