"""`tandem train`: a recipe becomes a model."""

# Imports wait until a command runs, so that --help answers at once.

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandem.cli.paths import near
from tandem.cli.training import How, make_ready, refuse_other_recipe, train_here

if TYPE_CHECKING:
    from tandem.config import Recipe

__all__ = ["BatchTokens", "Device", "Fit", "Plain", "Restarts", "Workers", "train"]

Workers = Annotated[
    int, typer.Option(min=0, help="Processes; 0: all GPUs, or on the CPU one, or as many as before.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: GPUs where there are any.")]
Fit = Annotated[bool, typer.Option("--fit", help="First find the largest batch that fits into memory.")]
BatchTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens a side of a batch on one worker; derived if not given.")
]
Restarts = Annotated[
    int,
    typer.Option(min=0, help="How often lost workers are started again without a new checkpoint between."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Lines instead of a display.")]


def train(
    recipe: Annotated[Path, typer.Argument(help="The recipe, a YAML file.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Values to change: a.b=c …")] = None,
    *,
    run: Annotated[Path | None, typer.Option(help="The run's folder; runs/NAME if not given.")] = None,
    workers: Workers = 0,
    device: Device = "auto",
    fit: Fit = False,
    batch_tokens: BatchTokens = None,
    restarts: Restarts = 3,
    plain: Plain = False,
) -> None:
    """Prepare the text if need be and train; the same command goes on where a run was stopped.

    Ctrl-C saves and ends; once more ends at once. Under torchrun it is one of the ranks.
    """
    from tandem.config import load_recipe

    loaded = load_recipe(recipe, overrides or ()).recipe
    folder = run or Path("runs") / loaded.name
    refuse_other_recipe(loaded, folder)
    if {"RANK", "WORLD_SIZE"} <= set(os.environ):
        _train_as_rank(loaded, folder, device=device, fit=fit, batch_tokens=batch_tokens)
        return
    how = How(
        workers=workers,
        device=device,
        fit=fit,
        batch_tokens=batch_tokens,
        restarts=restarts,
        plain=plain,
    )
    train_here(loaded, folder, how)


def _train_as_rank(recipe: "Recipe", run: Path, *, device: str, fit: bool, batch_tokens: int | None) -> None:
    from tandem.runlog.writer import NullLog
    from tandem.train.assemble import Options, train_rank

    if os.environ["RANK"] == "0":
        make_ready(recipe, run, NullLog())
        typer.echo(f"Training in {near(run)}; look at it with tandem watch {near(run)}.")
    train_rank(run, recipe, Options(device=device, fit=fit, batch_tokens=batch_tokens))
