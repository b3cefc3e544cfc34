"""One self-contained HTML page: stylesheet, plotly and figures inside, nothing fetched, nothing sent."""

import json
from base64 import b64encode
from hashlib import sha256

from tandem.observe.figures.look import Figure
from tandem.observe.markup import Html, tag
from tandem.observe.stylesheet import STYLESHEET

__all__ = ["build_page", "figure_box"]

DRAW = """
for (const box of document.querySelectorAll("[data-figure]")) {
  const figure = JSON.parse(document.getElementById(box.dataset.figure).textContent);
  Plotly.newPlot(box, figure.data, figure.layout, {responsive: true, displayModeBar: false});
}
"""


def figure_box(name: str, *, figure: Figure, alternative: str, meaning: str) -> Html:
    """A figure's place in the page, with its data, a text for who cannot see it, and what it means."""
    held = json.dumps(figure, sort_keys=True, ensure_ascii=False, allow_nan=False)
    # Inside a script element the parser knows no escapes: the text must not hold the start of a tag.
    data = Html(held.replace("<", "\\u003c"))
    return tag(
        "figure",
        tag("div", data_figure=f"{name}-data", role="img", aria_label=alternative),
        tag("script", data, type="application/json", id=f"{name}-data"),
        tag("details", tag("summary", "What is this?"), tag("p", meaning)),
    )


def build_page(*, title: str, body: Html) -> bytes:
    """The page as UTF-8; the same body gives the same bytes."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415  (megabytes that only a page needs)

    scripts = [_script_text(get_plotlyjs()), DRAW]
    head = "\n".join(
        (
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            tag("title", title),
            tag("style", Html(STYLESHEET)),
        )
    )
    drawing = "\n".join(tag("script", Html(script)) for script in scripts)
    content = f"<head>\n{head}\n</head>\n<body>\n{body}\n{drawing}\n</body>"
    return f'<!doctype html>\n<html lang="en">\n{content}\n</html>\n'.encode()


def _script_text(script: str) -> str:
    # The hash is taken of what the parser sees, which has no carriage returns.
    return script.replace("\r\n", "\n").replace("</script", "<\\/script")


def _policy(scripts: list[str]) -> str:
    """Only these scripts may run, and nothing may be loaded; plotly sets styles from its script."""
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
