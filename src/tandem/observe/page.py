"""One self-contained HTML page: stylesheet, plotly and figures inside, nothing fetched, nothing sent."""

import json
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from tandem.observe.markup import Html, joined, tag
from tandem.observe.plotly_script import plotly_script
from tandem.observe.stylesheet import STYLESHEET

if TYPE_CHECKING:
    from tandem.observe.figures.look import Figure

__all__ = ["build_page", "figure_box", "figure_data"]

DRAW = """
const boxes = [...document.querySelectorAll("[data-figure]")];
for (const box of boxes) {
  const figure = JSON.parse(document.getElementById(box.dataset.figure).textContent);
  // When the window changes, plotly takes the height of the box: without one, every figure would shrink.
  if (figure.layout.height) box.style.height = `${figure.layout.height}px`;
  Plotly.newPlot(box, figure.data, figure.layout, {responsive: true, displayModeBar: false});
}
// A link to what is folded away opens it; not every browser does so by itself.
const unfold = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
// Paper has no clicks: what is folded away is shown, and figures take the width of the paper.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const each of folded) each.open = true;
  for (const box of boxes) Plotly.relayout(box, {width: Math.min(box.clientWidth, 660)});
});
addEventListener("afterprint", () => {
  for (const each of folded) each.open = false;
  for (const box of boxes) {
    delete box.layout.width;
    Plotly.Plots.resize(box);
  }
});
"""


def figure_box(name: str, *, figure: "Figure | None", alternative: str, meaning: str, more: str = "") -> Html:
    """A figure's place in the page, with its data, a text for who cannot see it, what it means, and where to find more.

    Without a figure the box shows what `figure_data` has under this name elsewhere in the page.
    """
    return tag(
        "figure",
        tag("div", data_figure=f"{name}-data", role="img", aria_label=alternative),
        Html("") if figure is None else figure_data(name, figure),
        tag("details", tag("summary", "What is this?"), tag("p", meaning), more),
    )


def figure_data(name: str, figure: "Figure") -> Html:
    """The data of a figure, which may be shown in several places."""
    held = json.dumps(figure, sort_keys=True, ensure_ascii=False, allow_nan=False)
    # Inside a script element the parser knows no escapes: the text must not hold the start of a tag.
    return tag("script", Html(held.replace("<", "\\u003c")), type="application/json", id=f"{name}-data")


def build_page(*, title: str, body: Html) -> bytes:
    """The page as UTF-8; the same body gives the same bytes."""
    scripts = [_script_text(plotly_script()), DRAW]
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
    drawing = joined(tag("script", Html(script)) for script in scripts)
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
