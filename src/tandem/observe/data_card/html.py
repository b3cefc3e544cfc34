"""The data card as one self-contained page: answers first, then figures, then tables."""

from collections.abc import Iterable
from pathlib import Path

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.observe.data_card import tables
from tandem.observe.data_card.answers import EMPTY, QUESTION, Size, headline, lengths_note, mended, sizes
from tandem.observe.markup import Html, joined, tag
from tandem.observe.numbers import count, percent, share
from tandem.observe.page import build_page, figure_box
from tandem.observe.pieces import words_of
from tandem.observe.tabular import table_grid, table_section
from tandem.runlog.card import DataCard, Dropped, DroppedPair, EncodedPair, Languages

__all__ = ["card_sections", "write_html"]


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
            card_sections(card),
            tag("footer", "1 MB is 1,000,000 bytes. Tokens are pieces with one end mark for each sentence."),
        )
    )


def card_sections(card: DataCard, *, more: str = "") -> Html:
    """Sizes, figures and tables of the card, for a page with a heading for them; figures say where to find `more`."""
    return joined(
        (
            tag("dl", *map(_tile, sizes(card)), class_="tiles"),
            _dropped(card, more),
            _lengths(card, more),
            table_section(tables.sides_table(card)),
            table_section(tables.corpora_table(card)),
            _files(card),
            table_section(tables.held_out_table(card)),
            table_section(tables.batching_table(card)),
            _pairs(card),
        )
    )


def _tile(size: Size) -> Html:
    return tag("div", tag("dt", size.name), tag("dd", size.value), tag("dd", size.meaning))


def _dropped(card: DataCard, more: str) -> Html:
    # Figures load numpy, which only a page needs.
    from tandem.observe.figures.caption import CAPTIONS  # noqa: PLC0415
    from tandem.observe.figures.dropped import dropped_figure  # noqa: PLC0415

    kept = card.cleaned.lines
    figure = figure_box(
        "dropped",
        figure=dropped_figure(read=card.raw.lines, kept=kept, dropped=card.dropped),
        alternative=f"Bars: {count(kept)} of {count(card.raw.lines)} pairs kept; the reasons are listed below.",
        meaning=CAPTIONS["dropped"].meaning,
        more=more,
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


def _lengths(card: DataCard, more: str) -> Html:
    from tandem.observe.figures.caption import CAPTIONS  # noqa: PLC0415
    from tandem.observe.figures.lengths import lengths_figure  # noqa: PLC0415

    figure = figure_box(
        "lengths",
        figure=lengths_figure(card.lengths, card.languages),
        alternative="Curves: the share of sentences at each length in pieces, one for each side.",
        meaning=CAPTIONS["lengths"].meaning,
        more=more,
    )
    note = lengths_note(card)
    return tag(
        "section", tag("h2", "Sentence lengths"), figure, *([tag("p", note, class_="note")] if note else [])
    )


def _files(card: DataCard) -> Html:
    table = tables.files_table(card)
    return tag("details", tag("summary", "The raw files, with checksums"), table_grid(table), class_="files")


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
