"""`tandem compare`: several runs side by side: what differs, and what it did."""

# Imports wait until the command runs, so that --help answers at once.

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.observe.compare.comparison import Comparison
    from tandem.observe.series.columns import Series

__all__ = ["CompareCommand", "compare"]

HTML = "--html"
PAGE = "compare.html"
TO_TERMINAL = "-"


class CompareCommand(TyperCommand):
    """A command whose `--html` may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the page where the word after `--html` is another option, a run, or missing."""
        alone = {
            number
            for number, (word, after) in enumerate(pairwise([*args, HTML]))
            if word == HTML and (after.startswith("--") or Path(after).is_dir())
        }
        return super().parse_args(
            ctx, [f"{HTML}={PAGE}" if number in alone else word for number, word in enumerate(args)]
        )


def compare(
    runs: Annotated[list[Path], typer.Argument(help="The folders of two or more runs.")],
    *,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="[FILE|-]", help=f"Write one self-contained page with curves; {PAGE} if not named."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare runs: what differs, which is better in quality and speed, or that the difference is inside noise."""
    from tandem.cli.paired import pairing_of
    from tandem.observe.compare.comparison import compare_runs, name_runs
    from tandem.observe.compare.document import comparison_text
    from tandem.observe.compare.html import comparison_page
    from tandem.observe.report.files import write_text
    from tandem.observe.visible import visible

    paths = name_runs(runs)
    if len(paths) < 2:
        raise TandemError(f"Only {runs[0]} is named, and nothing to compare it with: name at least two runs.")
    named = _read(paths)
    pairing = pairing_of({name: (paths[name], series) for name, series in named.items()})
    comparison = compare_runs(named, pairing=pairing)
    if html == TO_TERMINAL:
        typer.echo(comparison_page(comparison), nl=False)
    elif html is not None:
        write_text(Path(html), comparison_page(comparison))
        typer.echo(f"wrote {visible(html)}", err=True)
    if as_json:
        typer.echo(comparison_text(comparison), nl=False)
    if html is None and not as_json:
        _show(comparison)


def _read(paths: dict[str, Path]) -> "dict[str, Series]":
    from tandem.cli.bars import Bars
    from tandem.observe.series.fold import read_series
    from tandem.observe.visible import visible

    for path in paths.values():
        if not path.is_dir():
            raise TandemError(f"There is no run {path}: check the path.")
    named: dict[str, Series] = {}
    with Bars() as bars:
        for name, path in paths.items():
            with bars.share(f"Reading {visible(name)}") as advance:
                named[name] = read_series(path, on_progress=advance)
    return named


def _show(comparison: "Comparison") -> None:
    from rich.console import Console

    from tandem.observe.compare.terminal import render_comparison

    render_comparison(comparison, Console(highlight=False))
