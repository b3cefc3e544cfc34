"""What is answered to who is refused: JSON to programs, a small page to browsers."""

from collections.abc import Mapping, Sequence

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response

from tandem.observe.markup import Html, tag
from tandem.observe.stylesheet import STYLESHEET

__all__ = ["refuse"]

TITLES = {400: "That cannot be asked", 401: "A token is needed", 403: "Not let in", 404: "Nothing here"}
OTHERWISE = "That did not work"
# In the page itself: without a token, no other file is given out.
STYLE = (
    STYLESHEET
    + """
input, button {
  font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--rule); border-radius: .4rem;
  padding: .35rem .6rem; max-width: 100%;
}
input { width: 22rem; display: block; margin: .25rem 0 .75rem; }
button { cursor: pointer; }
"""
)


def refuse(
    asked: Headers,
    status: int,
    sentence: str,
    *,
    headers: Mapping[str, str] | None = None,
    kept: Sequence[tuple[str, str]] | None = None,
) -> Response:
    """Say why; where `kept` is given, a page has a field for the token, and keeps this of the address."""
    told = {**(headers or {}), "Vary": "Accept"}
    if not _is_browser(asked):
        return JSONResponse({"error": sentence}, status_code=status, headers=told)
    return HTMLResponse(_page(status, sentence, kept), status_code=status, headers=told)


def _is_browser(asked: Headers) -> bool:
    """Whether somebody looks: scripts and programs ask for anything, or for JSON."""
    kinds = (each.partition(";")[0].strip().lower() for each in asked.get("accept", "").split(","))
    return "text/html" in kinds


def _page(status: int, sentence: str, kept: Sequence[tuple[str, str]] | None) -> str:
    title = TITLES.get(status, OTHERWISE)
    way = tag("p", tag("a", "To the runs", href="/")) if kept is None else _form(kept)
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"{tag('title', f'{title} · Tandem')}\n{tag('style', Html(STYLE))}"
    )
    eyebrow = tag("p", "Tandem", class_="eyebrow")
    body = tag("main", eyebrow, tag("h1", title), tag("p", sentence), way)
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def _form(kept: Sequence[tuple[str, str]]) -> Html:
    """Goes to the address at which it stands, so that nothing of that has to be written into it."""
    hidden = [tag("input", type="hidden", name_=name, value=value) for name, value in kept]
    field = tag("input", type="password", name_="token", autocomplete="off", required="", autofocus="")
    return tag("form", *hidden, tag("label", "Token", field), tag("button", "Open"), method="get")
