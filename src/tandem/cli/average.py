"""`tandem average`: the mean of a run's last or best checkpoints, which often translates better than any of them."""

# Imports wait until a command runs, so that --help answers at once.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tandem.cli.paths import near
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.checkpoint.listing import CheckpointInfo

__all__ = ["average"]


def average(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    target: Annotated[Path, typer.Argument(help="The folder to make; tandem translate takes it.")],
    *,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many checkpoints.")] = 5,
    by: Annotated[Literal["last", "loss", "bleu"], typer.Option(help="Which ones.")] = "last",
) -> None:
    """Average the weights of checkpoints into a folder that translates."""
    from tandem.checkpoint.average import write_average
    from tandem.checkpoint.listing import list_checkpoints
    from tandem.runlog.layout import RunLayout

    infos = [info for info in list_checkpoints(RunLayout(run).checkpoints) if info.is_complete]
    chosen = _choose(infos, count, by)
    if len(chosen) < count:
        raise TandemError(
            f"{run} has {len(chosen)} whole checkpoints to choose from, not {count}: give a smaller --count, or keep "
            "more of them with checkpoint.keep_last or checkpoint.keep_best."
        )
    write_average([info.folder for info in chosen], target)
    steps = ", ".join(f"{info.step:,}" for info in chosen)
    typer.echo(f"{near(target)} holds the mean of steps {steps}.")


def _choose(
    infos: "list[CheckpointInfo]", count: int, by: Literal["last", "loss", "bleu"]
) -> "list[CheckpointInfo]":
    from tandem.checkpoint.listing import by_bleu, by_loss

    ranked = {"last": infos[::-1], "loss": by_loss(infos), "bleu": by_bleu(infos)}[by]
    return sorted(ranked[:count], key=lambda info: info.step)
