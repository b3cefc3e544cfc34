"""Columns of a display: those for which there is no room are left out, so that none is cut."""

from collections.abc import Mapping, Sequence

from rich.text import Text

__all__ = ["GAP", "fitting"]

GAP = 2
"""Cells between two columns."""


def fitting(
    columns: Mapping[str, Sequence[Text]], *, width: int, first_to_go: Sequence[str] = ()
) -> list[str]:
    """Names of the columns that go into a width, in their order; after those named, the ones on the right go first."""
    kept = list(columns)
    going = [*first_to_go, *(name for name in reversed(kept) if name not in first_to_go)]
    for name in going[: len(columns) - 1]:
        widths = [max((cell.cell_len for cell in columns[each]), default=0) for each in kept]
        if sum(widths) + GAP * (len(kept) - 1) <= width:
            break
        kept.remove(name)
    return kept
