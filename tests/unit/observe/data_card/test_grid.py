import io

import pytest
from rich.console import Console

from tandem.observe.data_card.grid import lay_out
from tandem.observe.data_card.tables import Table

TABLE = Table(
    title="t",
    columns=("a long name", "a rather long heading", "short"),
    rows=(("corpus-with-a-very-long-name-indeed", "123,456,789", "9"), ("中文语料", "1", "10")),
)


def printed(table: Table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(lay_out(table, width=width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [36, 40, 60, 100])
def test_numbers_are_never_cut(width: int) -> None:
    assert "123,456,789" in printed(TABLE, width)


def test_headings_wrap_before_names_are_cut() -> None:
    assert "corpus-with-a-very-long-name-indeed" in printed(TABLE, 60)
    assert "a rather long heading" not in printed(TABLE, 60)
    assert "corpus-with-a-v…" in printed(TABLE, 36)


def test_rows_keep_to_the_width() -> None:
    assert max(map(len, printed(TABLE, 40).splitlines())) <= 40


def test_markup_of_the_terminal_library_is_text() -> None:
    table = Table(title="t", columns=("n",), rows=(("[bold]x[/bold]",),))
    assert "[bold]x[/bold]" in printed(table, 40)
