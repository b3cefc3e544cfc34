"""The section of docs/verdicts.md about each question, as every form of a report and the page itself show it."""

from functools import cache
from importlib.resources import files

from tandem.errors import TandemError
from tandem.observe.finding import Question
from tandem.observe.markup import Html, tag
from tandem.observe.verdicts import QUESTIONS

__all__ = [
    "question_of",
    "section_heading",
    "section_html",
    "section_id",
    "section_text",
    "sections_markdown",
]

TEXTS = "explained"


def question_of(key: str) -> Question:
    """The question of that name, or number; raises TandemError where there is none."""
    for question in QUESTIONS:
        if key in {question.key, str(question.number)}:
            return question
    known = ", ".join(question.key for question in QUESTIONS)
    raise TandemError(f"There is no question {key!r}: choose one of {known}.")


def section_id(key: str) -> str:
    """The anchor of a section in a page."""
    return f"section-{key}"


@cache
def section_text(key: str) -> str:
    """The section as Markdown, without its heading and without what the question's `about` says."""
    text = files("tandem.observe.verdicts") / TEXTS / f"{question_of(key).key}.md"
    return text.read_text(encoding="utf-8").strip()


@cache
def section_html(key: str) -> Html:
    """The same as markup."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only pages need it

    return Html(MarkdownIt("commonmark", {"html": False}).render(section_text(key)))


def section_heading(key: str, *, level: int) -> Html:
    """Which question a section belongs to, and where it is written."""
    question = question_of(key)
    place = tag("span", "(docs/verdicts.md)", class_="note")
    return tag(f"h{level}", f"{question.number}. {question.question} ", place)


def sections_markdown() -> str:
    """All sections with their headings, as docs/verdicts.md has them."""
    return "\n\n".join(
        f"## {each.number}. {each.question} (`{each.key}`)\n{each.about}\n\n{section_text(each.key)}"
        for each in QUESTIONS
    )
