"""The command `tandem`: its commands, and how errors reach the person who typed it."""

import os
import signal
import sys
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType

import typer

from tandem import __version__
from tandem.cli import (
    average,
    checkpoints,
    compare,
    config,
    dashboard,
    data,
    demo,
    doctor,
    estimate,
    export,
    forward,
    imports,
    lab,
    launch,
    report,
    resume,
    runs,
    score,
    serve,
    train,
    translate,
    watch,
)
from tandem.errors import TandemError
from tandem.observe.visible import visible_lines
from tandem.process import SafeChildren

__all__ = ["app", "main"]

GO_ON = frozenset({"data", "demo", "lab", "launch", "resume", "train"})
"""Commands that take up what an earlier call has finished."""

app = typer.Typer(
    name="tandem",
    help="Trains translation models across machines, and tells the truth about the run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")
app.command("estimate")(estimate.estimate)
app.command("doctor")(doctor.doctor)
app.command("train")(train.train)
app.command("resume")(resume.resume)
app.command("watch")(watch.watch)
app.command("dashboard")(dashboard.dashboard)
app.command("report", cls=report.ReportCommand)(report.report)
app.command("forward")(forward.forward)
app.command("compare", cls=compare.CompareCommand)(compare.compare)
app.add_typer(imports.app, name="import")
app.add_typer(runs.app, name="runs")
app.command("checkpoints")(checkpoints.checkpoints)
app.command("average")(average.average)
app.command("export")(export.export)
app.command("translate")(translate.translate)
app.command("score")(score.score)
app.command("serve")(serve.serve)
app.add_typer(config.app, name="config")
app.add_typer(lab.app, name="lab")
app.add_typer(launch.app, name="launch")


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    if version:
        typer.echo(f"tandem {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


class _Interrupted(BaseException):
    """Ctrl-C; not a KeyboardInterrupt, which typer would turn into a silent exit."""


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise _Interrupted


def _set_encodings() -> None:
    """What goes through files and pipes is UTF-8 whatever the locale; a terminal without it shows "?" for a letter."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            is_data = stream is sys.stdout and not stream.isatty()
            stream.reconfigure(encoding="utf-8" if is_data else None, errors="replace")
    if isinstance(sys.stdin, TextIOWrapper) and not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8", errors=sys.stdin.errors)


def _measure_dumb_terminal() -> None:
    """A terminal that writes lines alone has a width too, which is not asked for elsewhere: 80 columns are assumed."""
    if os.environ.get("TERM") not in {"dumb", "unknown"} or "COLUMNS" in os.environ:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            columns, lines = os.get_terminal_size(stream.fileno())
            if columns > 0 and lines > 0:
                os.environ.update({"COLUMNS": str(columns), "LINES": str(lines)})
                return


def main() -> None:
    """Run the command line: an error is one sentence on standard error and a non-zero exit."""
    before = signal.signal(signal.SIGINT, _interrupt)
    _set_encodings()
    _measure_dumb_terminal()
    try:
        with SafeChildren():
            app()
    except TandemError as error:
        sys.stderr.write(visible_lines(f"error: {error}\n"))
        sys.exit(1)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        told = f"error: Cannot use{where}: {error.strerror or error}; check the path and your rights to it.\n"
        sys.stderr.write(visible_lines(told))
        sys.exit(1)
    except _Interrupted:
        goes_on = sys.argv[1:2] and sys.argv[1] in GO_ON
        sys.stderr.write(
            "\ninterrupted: what is finished is kept; run the same command to go on.\n"
            if goes_on
            else "\nStopped.\n"
        )
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, before)
