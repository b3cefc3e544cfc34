import re
from importlib.resources import files
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.observe.figures import FIGURES
from tandem.observe.figures.caption import CAPTIONS
from tandem.observe.verdicts import QUESTIONS
from tandem.observe.verdicts.sections import (
    question_of,
    section_html,
    section_id,
    section_text,
    sections_markdown,
)

KEYS = [each.key for each in QUESTIONS]


def test_the_page_in_docs_has_the_sections_as_they_are(repository: Path) -> None:
    page = (repository / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert f"-->\n\n{sections_markdown()}\n\n<!--" in page, "run docs/make_verdicts.py"


def test_every_question_has_a_section_and_every_section_a_question() -> None:
    held = {each.name for each in (files("tandem.observe.verdicts") / "explained").iterdir()}
    assert held == {f"{key}.md" for key in KEYS}
    assert [each.number for each in QUESTIONS] == list(range(1, 12))


@pytest.mark.parametrize("key", KEYS)
def test_a_section_is_plain_markup_that_leads_nowhere_else(key: str) -> None:
    markup = section_html(key)
    assert set(re.findall(r"</?([a-z0-9]+)", markup)) <= {"p", "ul", "li", "code", "em"}
    assert not re.search(r"<[^>]*=", markup)
    assert markup.count("<p>") + markup.count("<li>") >= section_text(key).count("\n\n") + 1


@pytest.mark.parametrize("key", KEYS)
def test_what_is_this_is_short(key: str) -> None:
    assert 40 < len(question_of(key).about) < 260


def test_every_figure_names_the_section_that_concludes_from_it() -> None:
    assert CAPTIONS.keys() == FIGURES.keys()
    without = {name for name, each in CAPTIONS.items() if not each.section}
    assert without == {"gradient_norm", "cpu"}
    assert {each.section for each in CAPTIONS.values()} - {""} <= set(KEYS)


@pytest.mark.parametrize("name", ["", "netwok", "../network", "network.md"])
def test_an_unknown_name_is_one_sentence_with_all_names(name: str) -> None:
    with pytest.raises(
        TandemError, match=r"^There is no question .* choose one of duration, .*step_network\.$"
    ):
        section_text(name)


def test_the_anchor_of_a_section_does_not_change() -> None:
    assert section_id("network") == "section-network"
