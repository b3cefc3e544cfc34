import pytest

from tandem.observe.data_card.strips import length_strips
from tandem.runlog.card import DataCard, Histogram, Languages, SideHistograms

LANGUAGES = Languages(source="en", target="de")


def plot(source: Histogram, target: Histogram, *, width: int = 80) -> list[str]:
    lines = length_strips(SideHistograms(source=source, target=target), LANGUAGES, width=width)
    return [line.plain.rstrip() for line in lines]


def test_both_sides_share_one_scale() -> None:
    tall = Histogram(edges=(1, 2), counts=(100, 0))
    half = Histogram(edges=(1, 2), counts=(50, 50))
    lines = plot(tall, half, width=23)
    assert lines[:3] == ["   ██████████", "   ██████████", "en ██████████"]
    assert lines[3:6] == ["", "   ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄", "de ████████████████████"]


def test_what_is_rare_is_still_seen() -> None:
    rare = Histogram(edges=(1, 2, 3), counts=(100_000, 0, 600))
    assert plot(rare, rare, width=13)[2] == "en ███   ▁▁▁"


def test_the_axis_names_the_first_length_of_a_bar() -> None:
    flat = Histogram(edges=(40,), counts=(1,))
    lines = plot(flat, flat, width=43)
    assert lines[6] == "   1         11        21        31"
    assert lines[7] == "Pieces in a sentence; one bar is one length, the tallest 2.5 % of its side."


@pytest.mark.parametrize("width", [12, 40, 80, 200])
def test_the_plot_keeps_to_its_width(card: DataCard, width: int) -> None:
    lines = length_strips(card.lengths, card.languages, width=width)
    assert max(len(line.plain.rstrip()) for line in lines[:6]) <= max(width, 13)


def test_no_sentences_give_an_empty_plot() -> None:
    nothing = Histogram(edges=(), counts=())
    assert plot(nothing, nothing)[0] == ""
