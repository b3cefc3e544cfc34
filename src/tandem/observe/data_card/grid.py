"""A table of text laid out for a terminal: headings wrap, and names are cut before numbers."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from tandem.observe.data_card.tables import Table
from tandem.observe.visible import visible

__all__ = ["lay_out"]

GAP = 2
NARROWEST = 8


def lay_out(table: Table, *, width: int, examples: Sequence[Text] = ()) -> Grid:
    """The table within `width` columns; `examples`, one for each row, take what room is left at the right."""
    widths = _widths(table, width)
    grid = Grid(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for number, (column, cells) in enumerate(zip(table.columns, widths, strict=True)):
        named = number < table.names
        grid.add_column(
            Text(visible(column)),
            width=cells,
            justify="left" if named else "right",
            no_wrap=named,
            overflow="ellipsis",
        )
    if examples:
        left = width - sum(widths) - GAP * len(widths)
        grid.add_column("an example", width=max(NARROWEST, left), no_wrap=True, overflow="ellipsis")
    for row, example in zip_longest(table.rows, examples[: len(table.rows)]):
        cells_shown = [Text(visible(cell)) for cell in row]
        grid.add_row(*cells_shown, *([] if example is None else [example]))
    return grid


def _widths(table: Table, room: int) -> list[int]:
    cells = [max((cell_len(visible(row[at])) for row in table.rows), default=0) for at in _columns(table)]
    headings = [visible(heading) for heading in table.columns]
    wide = [max(cell, cell_len(heading)) for cell, heading in zip(cells, headings, strict=True)]
    if sum(wide) + GAP * (len(wide) - 1) <= room:
        return wide
    tight = [
        max(cell, *map(cell_len, heading.split())) for cell, heading in zip(cells, headings, strict=True)
    ]
    left = room - sum(tight[table.names :]) - GAP * (len(tight) - 1)
    names = [min(cell, max(NARROWEST, left // max(1, table.names))) for cell in tight[: table.names]]
    return [*names, *tight[table.names :]]


def _columns(table: Table) -> range:
    return range(len(table.columns))
