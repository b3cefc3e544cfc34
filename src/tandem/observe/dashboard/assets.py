"""The page and what it loads: its own files, the stylesheet of all pages, and plotly."""

import asyncio
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tandem.observe.dashboard.packing import VARY, accepts_packed, pack
from tandem.observe.markup import joined, tag
from tandem.observe.plotly_script import plotly_script
from tandem.observe.stylesheet import STYLESHEET
from tandem.observe.terms import EVALUATIONS, NUMBERS, terms_html
from tandem.observe.verdicts import QUESTIONS
from tandem.observe.verdicts.sections import question_of, section_heading, section_html, section_id

__all__ = ["page_routes", "prepare_script"]

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
INDEX = "index.html"
PAGES = ("/", "/run/{key}", "/compare")
"""The page's script reads the address."""


def page_routes() -> list[Route]:
    """The page, which is the same for every run, and what it loads: no name of a file is made of a request."""
    folder = files("tandem.observe.dashboard") / "page"
    names = [each.name for each in folder.iterdir() if each.is_file() and each.name != INDEX]
    made: dict[str, Callable[[], bytes]] = {name: partial(_read, name) for name in names}
    made |= {"plotly.js": _plotly, "stylesheet.css": STYLESHEET.encode}
    made |= {f"{section_id(each.key)}.html": partial(_section, each.key) for each in QUESTIONS}
    made |= {"terms-numbers.html": terms_html(NUMBERS).encode}
    made |= {"terms-evaluations.html": terms_html(EVALUATIONS).encode}
    pages = [Route(path, partial(_answer, name=INDEX, content=partial(_read, INDEX))) for path in PAGES]
    loaded = [
        Route(f"/assets/{name}", partial(_answer, name=name, content=content))
        for name, content in made.items()
        if _kind(name)
    ]
    return [*pages, *loaded]


def prepare_script() -> None:
    """Make ready what takes longest to send, so that the first page need not wait for it."""
    script = _plotly()
    _tag(script)
    _packed(script)


async def _answer(request: Request, *, name: str, content: Callable[[], bytes]) -> Response:
    """Sent once: a browser that has it already is told so."""
    data, is_packed = content(), accepts_packed(request)
    headers = {**VARY, "ETag": f'"{_tag(data)}{"-gzip" if is_packed else ""}"'}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = _kind(name)
    if is_packed:
        headers["Content-Encoding"] = "gzip"
        # Not in the loop: plotly's megabytes take a while, the first time.
        data = await asyncio.to_thread(_packed, data)
    return Response(data, headers=headers)


def _kind(name: str) -> str:
    return KINDS.get(f".{name.rpartition('.')[2]}", "")


@cache
def _read(name: str) -> bytes:
    return (files("tandem.observe.dashboard") / "page" / name).read_bytes()


@cache
def _plotly() -> bytes:
    return plotly_script().encode()


@cache
def _section(key: str) -> bytes:
    """A section of docs/verdicts.md with the question that it is about, which a page shows below "What is this?"."""
    head = tag("header", section_heading(key, level=4), tag("p", question_of(key).about))
    return joined((head, section_html(key))).encode()


@cache
def _packed(data: bytes) -> bytes:
    return pack(data)


@cache
def _tag(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
