"""The page that a browser shows to who is refused."""

from collections.abc import Sequence

from tandem.observe.markup import Html, tag
from tandem.observe.stylesheet import STYLESHEET
from tandem.web.refusal import Refusal

__all__ = ["refusal_page"]

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


def refusal_page(refusal: Refusal) -> str:
    """The page; where a token is missing it has a field for it, and keeps the rest of the address."""
    title = TITLES.get(refusal.status, OTHERWISE)
    way = tag("p", tag("a", "To the runs", href="/")) if refusal.kept is None else _form(refusal.kept)
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"{tag('title', f'{title} · Tandem')}\n{tag('style', Html(STYLE))}"
    )
    eyebrow = tag("p", "Tandem", class_="eyebrow")
    body = tag("main", eyebrow, tag("h1", title), tag("p", refusal.sentence), way)
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def _form(kept: Sequence[tuple[str, str]]) -> Html:
    """Goes to the address at which it stands, so that nothing of that has to be written into it."""
    hidden = [tag("input", type="hidden", name_=name, value=value) for name, value in kept]
    field = tag("input", type="password", name_="token", autocomplete="off", required="", autofocus="")
    return tag("form", *hidden, tag("label", "Token", field), tag("button", "Open"), method="get")
