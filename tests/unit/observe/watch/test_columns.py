from rich.text import Text

from tandem.observe.watch.columns import fitting

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
