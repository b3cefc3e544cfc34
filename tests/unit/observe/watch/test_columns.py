import re

import pytest
from rich.cells import cell_len
from rich.text import Text

from tandem.observe.watch.columns import fitting, shortened

COLUMNS = {name: [Text("x" * 10)] for name in ("one", "two", "three")}


def test_what_has_room_stays() -> None:
    assert fitting(COLUMNS, width=34) == ["one", "two", "three"]


def test_columns_go_from_the_right() -> None:
    assert fitting(COLUMNS, width=33) == ["one", "two"]
    assert fitting(COLUMNS, width=21) == ["one"]


def test_those_that_matter_least_go_before() -> None:
    assert fitting(COLUMNS, width=33, first_to_go=("two",)) == ["one", "three"]


def test_one_column_is_left_however_narrow() -> None:
    assert fitting(COLUMNS, width=1) == ["one"]
    assert fitting({}, width=1) == []


@pytest.mark.parametrize("cells", range(1, 60))
def test_a_shortened_sentence_fits_and_cuts_no_number(cells: int) -> None:
    text = "rank 12 was lost at start 1: nothing moved for 61.25 s, of 1,234"
    short = shortened(text, cells)
    assert cell_len(short) <= cells
    numbers = re.findall(r"\d[\d,.]*\d|\d", text)
    assert set(re.findall(r"\d[\d,.]*\d|\d", short)) <= set(numbers)
    assert shortened(text, len(text)) == text


def test_of_a_long_word_as_much_stays_as_there_is_room_for() -> None:
    assert shortened("checkpoints/step-00000400-of-the-run", 20) == "checkpoints/step-…"
    assert shortened("a-very-long-name-of-a-host", 10) == "a-very-lo…"
