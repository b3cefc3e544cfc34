"""`tandem report`: the eleven answers about a run, in the terminal, as a page, as JSON, as Markdown."""

# Imports wait until the command runs, so that --help answers at once.

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from tandem.observe.finding import Question
    from tandem.observe.report.gather import Report

__all__ = ["ReportCommand", "report"]

OPTIONAL = ("--html", "--json", "--markdown")
EXPLAIN = "--explain"
HERE = ""
"""Stands for the place where a file goes when no place is named."""
TO_TERMINAL = "-"


class ReportCommand(TyperCommand):
    """A command whose options for files may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the options that stand alone an empty value, which typer wants them to have."""
        return super().parse_args(ctx, list(_completed(args)))


def _completed(words: list[str]) -> list[str]:
    """Give options an empty value that stand alone, or before the only word that can be the run."""
    values = {
        number + 1
        for number, (word, after) in enumerate(pairwise(words))
        if word in OPTIONAL and (after == TO_TERMINAL or not after.startswith("-"))
    }
    asked = {number + 1 for number, word in enumerate(words) if word == EXPLAIN}
    if not any(
        number not in values | asked and not word.startswith("-") for number, word in enumerate(words)
    ):
        values -= set([number for number in values if Path(words[number]).is_dir()][-1:])
    return [
        f"{word}={HERE}" if word in OPTIONAL and number + 1 not in values else word
        for number, word in enumerate(words)
    ]


def report(
    run: Annotated[
        Path | None,
        typer.Argument(help="The run's folder; not needed where only a question is to be explained."),
    ] = None,
    *,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="[FILE|-]", help="Write one self-contained page; RUN/report/report.html if not named."
        ),
    ] = None,
    as_json: Annotated[
        str | None,
        typer.Option("--json", metavar="[FILE|-]", help="Write JSON; to the terminal if no file is named."),
    ] = None,
    markdown: Annotated[
        str | None,
        typer.Option(
            metavar="[FILE|-]", help="Write Markdown, to paste; to the terminal if no file is named."
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="QUESTION",
            help="Show one answer with its definitions and how it is judged, by the question's name or number, as "
            "`network`; a wrong name lists all.",
        ),
    ] = None,
) -> None:
    """Answer the eleven questions about a run from its log: how long, how well, what held it up, what to do."""
    from tandem.observe.report.files import document_text
    from tandem.observe.report.html import report_page
    from tandem.observe.report.markdown import report_markdown
    from tandem.observe.verdicts.sections import question_of
    from tandem.runlog.layout import RunLayout

    asked = None if explain is None else question_of(explain)
    is_shown = (html, as_json, markdown) == (None, None, None)
    if run is None:
        _define(asked if is_shown else None)
        return
    told = _read(run)
    _put(as_json, TO_TERMINAL, lambda: document_text(told).encode())
    _put(markdown, TO_TERMINAL, lambda: report_markdown(told).encode())
    _put(html, str(RunLayout(run).report / "report.html"), lambda: report_page(told))
    if asked is not None:
        _explain(told, asked.number)
    elif is_shown:
        _show(told)


def _put(place: str | None, usual: str, content: Callable[[], bytes]) -> None:
    """Write one form of the report where it was asked for."""
    from tandem.files import make_folder
    from tandem.observe.report.files import write_text
    from tandem.observe.visible import visible

    if place is None:
        return
    if not place and usual != TO_TERMINAL:
        # The run's own folder must not lead out of it; where the user says to, anything may be written.
        make_folder(Path(usual).parent)
    place = place or usual
    if place == TO_TERMINAL:
        typer.echo(content(), nl=False)
    else:
        write_text(Path(place), content())
        typer.echo(f"wrote {visible(place)}", err=True)


def _read(run: Path) -> "Report":
    from tandem.cli.bars import Bars
    from tandem.observe.report.gather import read_report
    from tandem.observe.visible import visible

    with Bars() as bars, bars.share(f"Reading {visible(run.name)}") as advance:
        return read_report(run, on_progress=advance)


def _show(told: "Report") -> None:
    from rich.console import Console

    from tandem.observe.report.terminal import render_report

    render_report(told, Console(highlight=False))


def _define(asked: "Question | None") -> None:
    """Explain a question without a run, which anything else needs."""
    from rich.console import Console

    from tandem.observe.report.terminal import render_question

    if asked is None:
        raise typer.BadParameter("Name the folder of a run.", param_hint="RUN")
    render_question(asked, Console(highlight=False))


def _explain(told: "Report", number: int) -> None:
    from rich.console import Console

    from tandem.observe.report.terminal import render_explanation

    render_explanation(told.findings[number - 1], Console(highlight=False))
