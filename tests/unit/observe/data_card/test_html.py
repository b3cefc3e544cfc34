import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.observe.data_card import headline, write_html
from tandem.runlog.card import DataCard, Dropped, DroppedPair, EncodedPair, Languages

EVIL = '</script><script>alert("x")</script><img src=x onerror=alert(1)>'


class Outline(HTMLParser):
    """The tags and the text of a page; complains of an element that is left open."""

    VOID = frozenset({"meta"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text += data


def written(card: DataCard, folder: Path) -> str:
    path = folder / "card.html"
    write_html(card, path)
    assert [each.name for each in folder.iterdir()] == ["card.html"]
    return path.read_text(encoding="utf-8")


def test_the_page_says_what_the_terminal_says(card: DataCard, tmp_path: Path) -> None:
    outline = Outline(written(card, tmp_path))
    assert headline(card) in outline.text
    for fact in (
        "news-commentary-v9",
        "Die Lampe steht auf dem Tisch.",
        "commoncrawl.en:991204",
        "3.1 %",
        "3" * 64,
    ):
        assert fact in outline.text
    assert outline.tags.count("figure") == 2


def test_text_from_the_data_never_becomes_markup(card: DataCard, tmp_path: Path) -> None:
    harmless = Outline(written(marked(card, "x"), tmp_path))
    hostile = Outline(written(marked(card, EVIL), tmp_path))
    assert hostile.tags == harmless.tags
    assert hostile.text.count(EVIL) > 10


def marked(card: DataCard, text: str) -> DataCard:
    """The card with `text` in every place that holds text."""
    pair = DroppedPair(origin=text, source=text, target=text)
    spelled = EncodedPair(source=text, target=text, source_pieces=("▁" + text,), target_pieces=(text,))
    corpus = card.corpora[0]
    file = replace(corpus.files[0], name=text, sha256=text)
    return replace(
        card,
        languages=Languages(source=text, target=text),
        corpora=(replace(corpus, name=text, files=(file,)),),
        dropped=(Dropped(reason=text, count=1, examples=(pair,)),),
        changed=(replace(card.changed[0], name=text),),
        vocabulary=replace(card.vocabulary, kind=text),
        held_out=(replace(card.held_out[0], name=text),),
        examples=(spelled,),
    )


def test_pieces_are_chips_grouped_by_word(card: DataCard, tmp_path: Path) -> None:
    page = written(card, tmp_path)
    assert (
        '<span class="word"><span class="chip">Hafen</span><span class="chip">meister</span></span>' in page
    )


def test_the_same_card_gives_the_same_bytes(card: DataCard, tmp_path: Path) -> None:
    first = written(card, tmp_path)
    assert written(card, tmp_path) == first


def test_a_card_of_nothing_is_a_page(empty_card: DataCard, tmp_path: Path) -> None:
    assert "0 sentence pairs" in Outline(written(empty_card, tmp_path)).text


def test_every_table_and_detail_is_reachable_by_keyboard(card: DataCard, tmp_path: Path) -> None:
    page = written(card, tmp_path)
    assert len(re.findall(r"<div[^>]*tabindex=\"0\"[^>]*><table>", page)) == page.count("<table>")
    assert page.count("<details") == page.count("<summary>")


def test_a_folder_that_is_not_there_is_one_clear_sentence(card: DataCard, tmp_path: Path) -> None:
    with pytest.raises(TandemError, match="missing"):
        write_html(card, tmp_path / "missing" / "card.html")


def test_importing_the_reader_does_not_load_plotly() -> None:
    program = "import sys, tandem.observe.data_card; print({'plotly', 'torch', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
