import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from tandem.observe.data_card import render_card
from tandem.runlog.card import DataCard, Dropped, DroppedPair, EncodedPair


def printed(card: DataCard, *, width: int = 80, examples: bool = True, colour: bool = False) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    render_card(card, console, examples=examples)
    return file.getvalue()


def test_the_answer_comes_first(card: DataCard) -> None:
    lines = printed(card).splitlines()
    assert lines[0] == "How big is the training set?"
    assert lines[1].startswith("4,509,785 sentence pairs: 891.6 MB of raw files, 1,318.1 MB of clean text")


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("examples", [True, False])
def test_every_line_keeps_to_the_width(card: DataCard, width: int, *, examples: bool) -> None:
    assert max(map(cell_len, printed(card, width=width, examples=examples).splitlines())) <= width


def test_the_card_fits_on_a_screen_and_a_half(card: DataCard) -> None:
    assert len(printed(card, examples=False).splitlines()) <= 72


def test_a_file_gets_plain_text(card: DataCard) -> None:
    text = printed(card)
    assert "\x1b" not in text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_every_number_of_the_tables_is_there(card: DataCard) -> None:
    text = printed(card)
    for number in (
        "4,577,597",
        "2,339,662",
        "17,862",
        "40,113",
        "113,871,204",
        "1.25",
        "96",
        "5,537",
        "3.1 %",
    ):
        assert number in text


def test_dropped_examples_are_shown_on_request(card: DataCard) -> None:
    assert "Read more about this offer." in printed(card)
    assert "(empty)" in printed(card)
    assert "Read more about this offer." not in printed(card, examples=False)


def test_piece_boundaries_are_seen_without_colour(card: DataCard) -> None:
    assert "Der Hafen·meister schloss das Nord·tor vor dem Sturm·." in printed(card)


def test_neighbouring_pieces_differ_in_shade(card: DataCard) -> None:
    text = printed(card, colour=True)
    assert "\x1b[33mmeister\x1b[0m" in text
    assert "\x1b[2;33mHafen\x1b[0m" in text


def test_a_long_pair_is_cut_with_a_sign(card: DataCard) -> None:
    long = EncodedPair(source="x", target="y", source_pieces=("▁wort",) * 200, target_pieces=("▁y",))
    lines = printed(replace(card, examples=(long,))).splitlines()
    assert sum("wort wort" in line for line in lines) == 2
    assert sum(line.endswith("wort …") for line in lines) == 1


def test_text_cannot_steer_the_terminal(card: DataCard) -> None:
    pair = DroppedPair(origin="f:1", source="\x1b]0;owned\x07", target="[red]a\nb[/red]")
    corpora = (replace(card.corpora[0], name="\x1b[2Jname"),)
    odd = replace(card, corpora=corpora, dropped=(Dropped(reason="odd", count=1, examples=(pair,)),))
    text = printed(odd)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]a\\nb[/red]" in text
    assert "\\x1b[2Jname" in text


def test_a_card_of_nothing_is_shown(empty_card: DataCard) -> None:
    assert "0 sentence pairs: 0 MB of raw files" in printed(empty_card)
