import json
from dataclasses import replace
from typing import Any

import pytest
from plotly.graph_objects import Figure

from tandem.observe.figures.lengths import lengths_figure
from tandem.runlog.card import DataCard, Histogram, Languages, SideHistograms

LANGUAGES = Languages(source="en", target="de")


def drawn(lengths: SideHistograms, languages: Languages = LANGUAGES) -> Any:
    figure = json.loads(json.dumps(lengths_figure(lengths, languages)))
    Figure(figure)  # plotly refuses what it does not know
    return figure


def test_unequal_buckets_are_drawn_at_the_same_scale() -> None:
    even = Histogram(edges=(2, 4), counts=(50, 50))
    fine = Histogram(edges=(1, 2, 3, 4), counts=(25, 25, 25, 25))
    source, target = drawn(SideHistograms(source=even, target=fine))["data"]
    assert (source["x"], source["y"]) == ([1, 3, 5], [25.0, 25.0, 0.0])
    assert (target["x"], target["y"]) == ([1, 2, 3, 4, 5], [25.0, 25.0, 25.0, 25.0, 0.0])


def test_a_step_tells_its_exact_numbers() -> None:
    both = Histogram(edges=(1, 3), counts=(1000, 3000))
    source, _ = drawn(SideHistograms(source=both, target=both))["data"]
    assert source["hovertext"][:2] == [
        "en (source), length 1: 1,000 sentences (25.0 %)",
        "en (source), lengths 2–3: 3,000 sentences (75.0 %)",
    ]


def test_the_axis_leaves_out_a_long_tail(card: DataCard) -> None:
    assert drawn(card.lengths)["layout"]["xaxis"]["range"] == [0, 128]


def test_sides_differ_by_more_than_colour(card: DataCard) -> None:
    source, target = drawn(card.lengths)["data"]
    assert source["line"]["color"] != target["line"]["color"]
    assert source["line"]["dash"] != target["line"]["dash"]


def test_a_language_code_is_never_taken_for_formatting(card: DataCard) -> None:
    languages = replace(card.languages, source='<a href="https://x.y">en</a>')
    shown = json.dumps(drawn(card.lengths, languages))
    assert "<" not in shown


@pytest.mark.parametrize("counts", [(), (0,)])
def test_no_sentences_draw_nothing(counts: tuple[int, ...]) -> None:
    nothing = Histogram(edges=counts and (1,), counts=counts)
    assert sum(drawn(SideHistograms(source=nothing, target=nothing))["data"][0]["y"]) == 0
