"""`tandem watch`: a run as it goes on, or as it ended, from any terminal that sees its folder."""

# Imports wait until the command runs, so that --help answers at once.

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from tandem.errors import TandemError

__all__ = ["watch"]


def watch(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    *,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a display.")] = False,
) -> None:
    """Show a run live: progress, loss, speed, hosts, evaluations, samples, warnings; Ctrl-C leaves it alone."""
    from rich.console import Console

    from tandem.observe.watch import can_draw, follow_run, look_at_run
    from tandem.runlog.layout import RunLayout

    log = RunLayout(run).log
    if not log.is_dir():
        raise TandemError(f"There is no run log in {log}: check the name of the run.")
    console = Console(highlight=False)
    with _left_by_ctrl_c():
        if plain or not can_draw(console):
            follow_run(run, console=console, plain=True)
        else:
            look_at_run(run, console=console)


class _Left(BaseException):
    """The person at the terminal has seen enough."""


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise _Left


@contextmanager
def _left_by_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the block and nothing else."""
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    except _Left:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
