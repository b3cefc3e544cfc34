import json
from typing import Any

from plotly.graph_objects import Figure

from tandem.observe.figures.dropped import dropped_figure
from tandem.runlog.card import DataCard, Dropped


def drawn(*, read: int, kept: int, dropped: tuple[Dropped, ...]) -> Any:
    figure = json.loads(json.dumps(dropped_figure(read=read, kept=kept, dropped=dropped)))
    Figure(figure)  # plotly refuses what it does not know
    return figure


def test_kept_and_dropped_make_up_what_was_read(card: DataCard) -> None:
    kept, gone, _ = drawn(read=card.raw.lines, kept=card.cleaned.lines, dropped=card.dropped)["data"]
    assert kept["x"][0] + gone["x"][0] == card.raw.lines
    assert kept["text"] == ["4,509,785 kept (98.5 %)"]


def test_each_reason_has_its_bar(card: DataCard) -> None:
    reasons = drawn(read=card.raw.lines, kept=card.cleaned.lines, dropped=card.dropped)["data"][2]
    assert reasons["y"] == [each.reason for each in card.dropped]
    assert reasons["x"] == [each.count for each in card.dropped]
    assert reasons["text"][0] == "31,204 (0.7 %)"


def test_a_reason_is_never_taken_for_formatting() -> None:
    odd = Dropped(reason="<b>bold</b> & co", count=1, examples=())
    reasons = drawn(read=2, kept=1, dropped=(odd,))["data"][2]
    assert reasons["y"] == ["&lt;b&gt;bold&lt;/b&gt; &amp; co"]


def test_nothing_dropped_is_still_a_figure() -> None:
    assert drawn(read=0, kept=0, dropped=())["data"][2]["x"] == []
