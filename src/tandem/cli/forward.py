"""`tandem forward`: a run in a tool that people already use."""

# Imports wait until a command runs, so that --help answers at once.

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.observe.sinks.beside import Beside

__all__ = ["ForwardTo", "forward", "forwarding"]


def _refuse_missing(tool: str) -> str:
    """Before a run begins: a tool that is not there shall not be found out in the middle of it."""
    from tandem.observe.sinks.tool import require_tool

    if tool:
        require_tool(tool)
    return tool


ForwardTo = Annotated[
    str,
    typer.Option(
        "--forward",
        help="Also forward the run: wandb, mlflow or trackio.",
        metavar="TOOL",
        callback=_refuse_missing,
    ),
]

LOWEST = 19
LOOK_S = 2.0
LAST_S = 300.0
"""Of a tool that takes nothing any more, this process is rid so long after the run has let go of it."""


def forward(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    *,
    to: Annotated[str, typer.Option(help="wandb, mlflow or trackio.", metavar="TOOL")],
    project: Annotated[str, typer.Option(help="Where the tool shall put it; tandem if not given.")] = "",
    name: Annotated[str, typer.Option(help="The run's name there; that of its folder if not given.")] = "",
    offline: Annotated[
        bool, typer.Option("--offline", help="Into files on this machine, without any server.")
    ] = False,
    beside: Annotated[bool, typer.Option("--beside", hidden=True)] = False,
) -> None:
    """Forward a run to Weights & Biases, MLflow or Trackio until it is over; given again, it goes on.

    It reads the run's log: whatever becomes of the tool, training is not touched. Ctrl-C ends it.
    """
    from tandem.observe.sinks.forward import forward_run
    from tandem.observe.sinks.opened import forwarding_to
    from tandem.observe.sinks.tool import TITLES
    from tandem.runlog.layout import RunLayout

    log = RunLayout(run).log
    if not log.is_dir():
        raise TandemError(f"There is no run log in {log}: check the name of the run.")
    until = None
    if beside:
        os.nice(LOWEST)
        until = _until_let_go(lambda: _give_up(TITLES[to]))
    with (
        _ended_by_signals() as is_left,
        forwarding_to(to, run, project=project, name=name, offline=offline) as forwarder,
    ):
        forward_run(run, forwarder, until=until, is_left=is_left)
    typer.echo(f"{run} is in {TITLES[to]}, {'as far as it was read' if is_left() else 'whole'}.")


@contextmanager
def forwarding(run: Path, tool: str) -> Iterator[list["Beside"]]:
    """Forward the run beside the block, from a process of its own; an empty name means not at all."""
    from tandem.observe.sinks.beside import start_beside
    from tandem.observe.visible import visible

    if not tool:
        yield []
        return
    child = start_beside(run, tool)
    try:
        yield [child]
    finally:
        child.finish()
        if child.failure:
            typer.echo(visible(f"warning: {child.failure}"), err=True)


def _until_let_go(give_up: Callable[[], None], *, last_s: float = LAST_S) -> Callable[[], bool]:
    """Whether the run that started this process has let go of it, or is gone; `give_up` comes some time after that."""
    parent, stream, let_go = os.getppid(), sys.stdin.fileno(), Event()

    def watch() -> None:
        # In a thread of its own: a tool that hangs never asks.
        while os.getppid() == parent:
            readable, _, _ = select.select([stream], [], [], LOOK_S)
            if readable and not os.read(stream, 4096):
                break
        let_go.set()
        time.sleep(last_s)
        give_up()

    Thread(target=watch, daemon=True).start()
    return let_go.is_set


def _give_up(title: str) -> None:
    typer.echo(
        f"error: {title} did not take the rest within {LAST_S:.0f} s: the same command goes on.", err=True
    )
    os._exit(1)


@contextmanager
def _ended_by_signals() -> Iterator[Callable[[], bool]]:
    """Inside the block the first signal only sets the flag that is given; the next one ends the process."""
    got: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _frame: FrameType | None) -> None:
        got.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(got)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
