"""The data card as one self-contained page: answers first, then figures, then tables."""

from collections.abc import Iterable
from pathlib import Path

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.observe.data_card import tables
from tandem.observe.data_card.answers import EMPTY, QUESTION, Size, headline, lengths_note, mended, sizes
from tandem.observe.figures.dropped import dropped_figure
from tandem.observe.figures.lengths import lengths_figure
from tandem.observe.markup import Html, joined, tag
from tandem.observe.numbers import count, percent, share
from tandem.observe.page import build_page, figure_box
from tandem.observe.pieces import words_of
from tandem.runlog.card import DataCard, Dropped, DroppedPair, EncodedPair, Languages

__all__ = ["write_html"]


def write_html(card: DataCard, path: Path) -> None:
    """Write the page: one file that needs no network; the same card gives the same bytes."""
    title = f"Data card: {card.languages.source} → {card.languages.target}"
    page = build_page(title=title, body=_body(card, title))
    try:
        write_atomic(path, page)
    except OSError as error:
        raise TandemError(
            f"Cannot write {path}: {error.strerror}; name a file in a folder that you can write to."
        ) from error


def _body(card: DataCard, title: str) -> Html:
    return joined(
        (
            tag("header", tag("p", title, class_="eyebrow"), tag("h1", QUESTION)),
            tag("p", headline(card), class_="answer"),
            tag("dl", *map(_tile, sizes(card)), class_="tiles"),
            _dropped(card),
            _lengths(card),
            _table(tables.sides_table(card)),
            _table(tables.corpora_table(card)),
            _files(card),
            _table(tables.held_out_table(card)),
            _table(tables.batching_table(card)),
            _pairs(card),
            tag("footer", "1 MB is 1,000,000 bytes. Tokens are pieces with one end mark for each sentence."),
        )
    )


def _tile(size: Size) -> Html:
    return tag("div", tag("dt", size.name), tag("dd", size.value), tag("dd", size.meaning))


def _dropped(card: DataCard) -> Html:
    kept = card.cleaned.lines
    figure = figure_box(
        "dropped",
        figure=dropped_figure(read=card.raw.lines, kept=kept, dropped=card.dropped),
        alternative=f"Bars: {count(kept)} of {count(card.raw.lines)} pairs kept; the reasons are listed below.",
        meaning="The upper bar is every pair that was read. The lower bars are the dropped ones by reason, "
        "at a larger scale, because each is a small part. A pair is counted under the first reason that fits.",
    )
    table = tables.dropped_table(card)
    reasons = [_reason(each, card) for each in card.dropped]
    return tag(
        "section",
        tag("h2", table.title),
        figure,
        tag("div", *reasons, class_="reasons"),
        tag("p", mended(card), class_="note"),
    )


def _reason(dropped: Dropped, card: DataCard) -> Html:
    summary = tag(
        "summary",
        tag("span", dropped.reason, class_="name"),
        tag("span", count(dropped.count), class_="number"),
        tag("span", percent(share(dropped.count, card.raw.lines)), class_="number"),
    )
    shown = [_dropped_pair(pair, card.languages) for pair in dropped.examples]
    return tag("details", summary, *(shown or [tag("p", "No example was kept.", class_="note")]))


def _dropped_pair(pair: DroppedPair, languages: Languages) -> Html:
    return tag(
        "div",
        _side(languages.source, "source", pair.source),
        _side(languages.target, "target", pair.target),
        tag("p", pair.origin, class_="note"),
        class_="pair",
    )


def _side(language: str, side: str, content: str) -> Html:
    text = tag("span", content or EMPTY, lang=language, dir="auto")
    return tag("p", tag("span", language, class_="side"), text, class_=side)


def _lengths(card: DataCard) -> Html:
    figure = figure_box(
        "lengths",
        figure=lengths_figure(card.lengths, card.languages),
        alternative="Curves: the share of sentences at each length in pieces, one for each side.",
        meaning="How long sentences are, in subword pieces without the end mark. The height is the share of "
        "that side's sentences at each length; both sides use the same scale. Point at a step for its numbers.",
    )
    note = lengths_note(card)
    return tag(
        "section", tag("h2", "Sentence lengths"), figure, *([tag("p", note, class_="note")] if note else [])
    )


def _table(table: tables.Table) -> Html:
    return tag("section", tag("h2", table.title), _grid(table), tag("p", table.note, class_="note"))


def _grid(table: tables.Table) -> Html:
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


def _files(card: DataCard) -> Html:
    table = tables.files_table(card)
    return tag("details", tag("summary", "The raw files, with checksums"), _grid(table), class_="files")


def _pairs(card: DataCard) -> Html:
    shown = [_pair(pair, card.languages) for pair in card.examples]
    return tag("section", tag("h2", "Pairs as the model sees them"), *shown)


def _pair(pair: EncodedPair, languages: Languages) -> Html:
    return tag(
        "div",
        _side(languages.source, "source", pair.source),
        _chips(languages.source, "source", pair.source_pieces),
        _side(languages.target, "target", pair.target),
        _chips(languages.target, "target", pair.target_pieces),
        class_="pair",
    )


def _chips(language: str, side: str, pieces: Iterable[str]) -> Html:
    words = (
        tag("span", *(tag("span", piece, class_="chip") for piece in word), class_="word")
        for word in words_of(tuple(pieces))
    )
    return tag("p", *words, class_=side, lang=language, dir="auto")
