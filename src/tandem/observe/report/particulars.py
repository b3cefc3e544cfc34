"""Parts of the page that show what a run was given and what it gave: recipe and translations."""

from collections.abc import Mapping

from tandem.observe.markup import Html, joined, tag
from tandem.observe.series.columns import Series
from tandem.observe.tabular import Table, table_grid

__all__ = ["flat_rows", "recipe_section", "translations_section"]


def translations_section(series: Series) -> Html:
    """The sample translations of the last evaluation."""
    if not series.translations:
        return Html("")
    shown = [
        tag(
            "div",
            _said("source", "source", each.source),
            _said("reference", "reference", each.reference),
            _said("translation", "target", each.hypothesis),
            class_="pair",
        )
        for each in series.translations
    ]
    title = f"Translations after step {series.translations[-1].step:,}"
    return tag("section", tag("h2", title), *shown)


def _said(name: str, kind: str, text: str) -> Html:
    return tag("p", tag("span", name, class_="side"), tag("span", text or "(empty)", dir="auto"), class_=kind)


def recipe_section(series: Series) -> Html:
    """The resolved recipe, one value a line; of an imported run what its tool said of itself."""
    found: Mapping[str, object] = series.recipe
    title = "Recipe"
    if not found and series.imported is not None:
        found, title = series.imported.facts, "What the other tool said of the run"
    if not found:
        return tag("section", tag("h2", title), tag("p", "The run folder has no recipe.", class_="note"))
    table = Table(title=title, columns=("key", "value"), rows=tuple(flat_rows(found)), names=2)
    return tag("section", tag("h2", title), _folded(table))


def _folded(table: Table) -> Html:
    summary = tag("summary", f"{len(table.rows)} values")
    return joined((tag("details", summary, table_grid(table), class_="files"),))


def flat_rows(held: object, key: str = "") -> list[tuple[str, str]]:
    """Nested values as rows of text, each under its whole key, as `model.width` or `data.train[0].weight`."""
    if isinstance(held, Mapping):
        return [
            row
            for name, value in held.items()
            for row in flat_rows(value, f"{key}.{name}" if key else str(name))
        ]
    if isinstance(held, list | tuple):
        return [row for number, value in enumerate(held) for row in flat_rows(value, f"{key}[{number}]")]
    return [(key, str(held))]
