"""The page and what it loads: its own files, the stylesheet of all pages, and plotly."""

from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files

from starlette.routing import Route

from tandem.observe.markup import joined, tag
from tandem.observe.plotly_script import plotly_script
from tandem.observe.stylesheet import STYLESHEET
from tandem.observe.terms import EVALUATIONS, NUMBERS, terms_html
from tandem.observe.verdicts import QUESTIONS
from tandem.observe.verdicts.sections import question_of, section_heading, section_html, section_id
from tandem.web.files import file_route, kind_of, packaged, prepare

__all__ = ["page_routes", "prepare_script"]

PACKAGE = "tandem.observe.dashboard"
INDEX = "index.html"
PAGES = ("/", "/run/{key}", "/compare")
"""The page's script reads the address."""


def page_routes() -> list[Route]:
    """The page, which is the same for every run, and what it loads: no name of a file is made of a request."""
    folder = files(PACKAGE) / "page"
    names = [each.name for each in folder.iterdir() if each.is_file() and each.name != INDEX]
    made: dict[str, Callable[[], bytes]] = {name: partial(packaged, PACKAGE, name) for name in names}
    made |= {"plotly.js": _plotly, "stylesheet.css": STYLESHEET.encode}
    made |= {f"{section_id(each.key)}.html": partial(_section, each.key) for each in QUESTIONS}
    made |= {"terms-numbers.html": terms_html(NUMBERS).encode}
    made |= {"terms-evaluations.html": terms_html(EVALUATIONS).encode}
    index = partial(packaged, PACKAGE, INDEX)
    pages = [file_route(path, INDEX, index, is_kept=False) for path in PAGES]
    loaded = [file_route(f"/assets/{name}", name, content) for name, content in made.items() if kind_of(name)]
    return [*pages, *loaded]


def prepare_script() -> None:
    """Make ready what takes longest to send, so that the first page need not wait for it."""
    prepare(_plotly())


@cache
def _plotly() -> bytes:
    return plotly_script().encode()


@cache
def _section(key: str) -> bytes:
    """A section of docs/verdicts.md with the question that it is about, which a page shows below "What is this?"."""
    head = tag("header", section_heading(key, level=4), tag("p", question_of(key).about))
    return joined((head, section_html(key))).encode()
