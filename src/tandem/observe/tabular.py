"""Tables of text, and how pages show them."""

from collections.abc import Iterable
from dataclasses import dataclass

from tandem.observe.markup import Html, tag

__all__ = ["Table", "table_grid", "table_section"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text; the first `names` columns are names, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    note: str = ""


def table_section(table: Table, *, about: str = "") -> Html:
    """A section with the table's title, what it is about, its cells and its note."""
    return tag(
        "section", tag("h2", table.title), about, table_grid(table), tag("p", table.note, class_="note")
    )


def table_grid(table: Table) -> Html:
    """The cells alone, in a region that may scroll sideways; nothing where there are no rows."""
    if not table.rows:
        return Html("")
    head = tag("thead", tag("tr", *_cells(table.columns, "th", table.names)))
    body = tag("tbody", *(tag("tr", *_cells(row, "td", table.names)) for row in table.rows))
    # A region that scrolls sideways must be reachable by keyboard.
    return tag(
        "div", tag("table", head, body), class_="scroll", role="region", aria_label=table.title, tabindex="0"
    )


def _cells(row: Iterable[str], name: str, names: int) -> list[Html]:
    return [
        tag(name, cell) if number < names else tag(name, cell, class_="number")
        for number, cell in enumerate(row)
    ]
