"""The data card in the terminal: answers first, within 80 columns, plain where the output is a file."""

from collections.abc import Sequence
from itertools import cycle

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tandem.observe.data_card import tables
from tandem.observe.data_card.answers import EMPTY, QUESTION, headline, lengths_note, mended, sizes
from tandem.observe.data_card.grid import lay_out
from tandem.observe.data_card.strips import SOURCE_STYLE, TARGET_STYLE, length_strips
from tandem.observe.pieces import words_of
from tandem.observe.visible import visible
from tandem.runlog.card import DataCard, Dropped, EncodedPair, Languages

__all__ = ["render_card"]

SHOWN_PAIRS = 3
SHOWN_LINES = 2
INDENT = 2
WIDEST = 100
"""A plot wider than this is no clearer."""
BOUNDARY = "·"


def render_card(card: DataCard, console: Console, *, examples: bool = True) -> None:
    """Print the card; `examples` adds a dropped pair to each reason."""
    console.print(Text(QUESTION, "bold"))
    console.print(Text(visible(headline(card))))
    _print_sizes(card, console)
    _print_table(tables.corpora_table(card), console)
    dropped = [_example(each) for each in card.dropped] if examples else []
    _print_table(tables.dropped_table(card), console, examples=dropped)
    _print_note(mended(card), console)
    _print_table(tables.sides_table(card), console)
    _print_lengths(card, console)
    _print_table(tables.held_out_table(card), console)
    _print_table(tables.batching_table(card), console)
    _print_pairs(card, console)


def _print_sizes(card: DataCard, console: Console) -> None:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim")
    for size in sizes(card):
        grid.add_row(Text(size.name), Text(size.value, "bold"), Text(visible(size.meaning)))
    console.print()
    console.print(Padding.indent(grid, INDENT))


def _print_table(table: tables.Table, console: Console, *, examples: Sequence[Text] = ()) -> None:
    _print_title(table.title, console)
    if table.rows:
        grid = lay_out(table, width=console.width - INDENT, examples=examples)
        console.print(Padding.indent(grid, INDENT))
    _print_note(table.note, console)


def _example(dropped: Dropped) -> Text:
    if not dropped.examples:
        return Text("")
    pair = dropped.examples[0]
    sides = (pair.source, SOURCE_STYLE), (pair.target, TARGET_STYLE)
    return Text("\n").join([Text(visible(side) or EMPTY, style) for side, style in sides])


def _print_lengths(card: DataCard, console: Console) -> None:
    _print_title("Sentence lengths", console)
    width = min(WIDEST, console.width) - INDENT
    for line in length_strips(card.lengths, card.languages, width=width):
        console.print(Padding.indent(line, INDENT), no_wrap=True)
    _print_note(lengths_note(card), console)


def _print_pairs(card: DataCard, console: Console) -> None:
    if not card.examples:
        return
    _print_title(f"Pairs as the model sees them ({BOUNDARY} parts the pieces of a word)", console)
    for pair in card.examples[:SHOWN_PAIRS]:
        _print_pair(pair, card.languages, console)


def _print_pair(pair: EncodedPair, languages: Languages, console: Console) -> None:
    labels = visible(languages.source), visible(languages.target)
    gutter = max(map(len, labels)) + 1
    sides = zip(labels, (pair.source_pieces, pair.target_pieces), (SOURCE_STYLE, TARGET_STYLE), strict=True)
    for language, pieces, style in sides:
        lines = _cut(_spelled(pieces, style), console, width=console.width - INDENT - gutter)
        for number, line in enumerate(lines):
            mark = language if number == 0 else ""
            console.print(Text(f"{'':{INDENT}}{mark:<{gutter}}").append_text(line), no_wrap=True)


def _spelled(pieces: Sequence[str], style: str) -> Text:
    """The pieces as words; neighbours differ in shade where the terminal has shades."""
    shades = cycle((style, f"{style} dim"))
    text = Text()
    for place, word in enumerate(words_of(pieces)):
        text.append(" " if place else "")
        for number, piece in enumerate(word):
            text.append(BOUNDARY if number else "", "dim")
            text.append(visible(piece), next(shades))
    return text


def _cut(text: Text, console: Console, *, width: int) -> list[Text]:
    """The first lines of a text, and a sign where there were more."""
    lines = list(text.wrap(console, width - 2))
    if len(lines) > SHOWN_LINES:
        lines = lines[:SHOWN_LINES]
        lines[-1].rstrip()
        lines[-1].append(" …", "dim")
    return lines


def _print_title(title: str, console: Console) -> None:
    console.print()
    console.print(Text(visible(title), "bold"))


def _print_note(note: str, console: Console) -> None:
    if note:
        console.print(Padding.indent(Text(visible(note), "dim"), INDENT))
