"""`tandem checkpoints`: what a run has kept, how good it is, and whether it is whole."""

# Imports wait until a command runs, so that --help answers at once.

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandem.cli.paths import near
from tandem.errors import TandemError
from tandem.progress import SILENT

if TYPE_CHECKING:
    from rich.table import Table

    from tandem.checkpoint.listing import CheckpointInfo

__all__ = ["checkpoints"]


def checkpoints(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    *,
    files: Annotated[bool, typer.Option("--files", help="Also show each file and its size.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte and compare checksums.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List a run's checkpoints: step, time, size, loss and BLEU on the valid text, and which is the best."""
    from rich.console import Console

    from tandem.checkpoint.listing import list_checkpoints
    from tandem.cli.bars import Bars
    from tandem.observe.visible import visible
    from tandem.runlog.layout import RunLayout

    folder = RunLayout(run).checkpoints
    if not folder.is_dir():
        raise TandemError(f"{run} has no folder {folder.name}: name the folder of a run that has saved one.")
    with Bars() if verify else nullcontext(SILENT) as progress:
        infos = list_checkpoints(folder, verify=verify, progress=progress)
    if as_json:
        typer.echo(json.dumps([_as_json(info) for info in infos], indent=1, ensure_ascii=False))
    else:
        # What reads a pipe wants whole lines; a person's terminal is as wide as it is.
        console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
        console.print(_table(infos, files=files))
        for info in infos:
            if info.damage is not None:
                told = visible(f"{info.folder.name}: {info.damage}")
                console.print(told, markup=False, soft_wrap=True)
        console.print(f"in {near(folder)}", markup=False, soft_wrap=True)
    if verify and not all(info.is_complete for info in infos):
        raise typer.Exit(1)


def _as_json(info: "CheckpointInfo") -> dict[str, Any]:
    return {
        "step": info.step,
        "folder": str(info.folder),
        "written": info.written.isoformat(timespec="seconds"),
        "bytes": info.bytes,
        "loss": info.scores.loss,
        "bleu": info.scores.bleu,
        "marks": _marks(info),
        "damage": info.damage,
        "files": dict(info.files),
    }


def _marks(info: "CheckpointInfo") -> list[str]:
    marks = {"newest": info.is_newest, "best loss": info.is_best_loss, "best BLEU": info.is_best_bleu}
    return [name for name, held in marks.items() if held] + ["damaged"] * (not info.is_complete)


def _table(infos: "list[CheckpointInfo]", *, files: bool) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from tandem.observe.numbers import count, megabytes
    from tandem.observe.visible import visible

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "written", "size", "eval loss", "BLEU"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for info in infos:
        loss, bleu = info.scores.loss, info.scores.bleu
        table.add_row(
            count(info.step),
            info.written.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
            megabytes(info.bytes),
            "–" if loss is None else f"{loss:.4f}",
            "–" if bleu is None else f"{bleu:.2f}",
            ", ".join(_marks(info)),
        )
        for name, size in info.files.items() if files else ():
            table.add_row("", "", megabytes(size), "", "", escape(visible(name)))
    return table
