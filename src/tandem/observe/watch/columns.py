"""Columns and sentences of a display: what has no room is left out or shortened by words, so that no number is cut."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

__all__ = ["GAP", "fitting", "shortened"]

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


def shortened(text: str, cells: int) -> str:
    """The text in so many cells: cut behind a word, or where there is only one, not within a number."""
    if cell_len(text) <= cells:
        return text
    if cells < 1:
        return ""
    cut = set_cell_size(text, cells - 1)
    word = cut[: cut.rfind(" ") + 1] if text[len(cut) : len(cut) + 1] != " " else cut
    # Half of the room would be lost for a long word, as a path is.
    if cell_len(word) * 2 < cells:
        is_inside = cut[-1:].isdigit() and text[len(cut) : len(cut) + 2].strip(".,")[:1].isdigit()
        word = cut.rstrip("0123456789.,") if is_inside else cut
    return f"{word.rstrip(' ,;:(·')}…"
