"""`tandem average`: the mean of several checkpoints, which often translates better than any of them."""

# Imports wait until a command runs, so that --help answers at once.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tandem.cli.paths import near
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.checkpoint.listing import CheckpointInfo

__all__ = ["average"]

By = Literal["last", "loss", "bleu"]
COUNT = 5


def average(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN | CHECKPOINT…", help="A run, whose checkpoints are chosen from; or checkpoints."
        ),
    ],
    target: Annotated[Path, typer.Argument(help="The folder to make; tandem translate takes it.")],
    *,
    count: Annotated[
        int | None,
        typer.Option(
            "--count", "-n", min=1, help=f"How many checkpoints of a run; up to {COUNT} if not given."
        ),
    ] = None,
    by: Annotated[By | None, typer.Option(help="Which ones of a run; the last if not given.")] = None,
) -> None:
    """Average the weights of checkpoints into a folder that translates."""
    from tandem.checkpoint.average import write_average

    if len(sources) == 1 and not _is_checkpoint(sources[0]):
        infos = _choose(sources[0], count, by or "last")
        folders = [info.folder for info in infos]
        steps = ", ".join(f"{info.step:,}" for info in infos)
        named = (
            f"{len(infos)} checkpoints, steps {steps}" if len(infos) > 1 else f"1 checkpoint, step {steps}"
        )
    else:
        _refuse_choices(sources, chosen=count is not None or by is not None)
        folders, named = sources, ", ".join(near(folder) for folder in sources)
    write_average(folders, target)
    typer.echo(f"{near(target)} holds the mean of {named}.")


def _is_checkpoint(folder: Path) -> bool:
    from tandem.checkpoint.layout import MANIFEST

    return (folder / MANIFEST).is_file()


def _refuse_choices(sources: list[Path], *, chosen: bool) -> None:
    for folder in sources:
        if not _is_checkpoint(folder):
            raise TandemError(
                f"{folder} is not a checkpoint: name one run alone, or the folders of checkpoints, which are called "
                "step-… in a run."
            )
    if chosen:
        raise TandemError("Checkpoints are named, so --count and --by choose nothing: leave them out.")
    if len({folder.resolve() for folder in sources}) < len(sources):
        raise TandemError("A checkpoint is named twice: name each once.")


def _choose(run: Path, count: int | None, by: By) -> "list[CheckpointInfo]":
    from tandem.checkpoint.listing import by_bleu, by_loss, list_checkpoints
    from tandem.runlog.layout import RunLayout

    infos = [info for info in list_checkpoints(RunLayout(run).checkpoints) if info.is_complete]
    ranked = {"last": infos[::-1], "loss": by_loss(infos), "bleu": by_bleu(infos)}[by]
    if not ranked:
        scored = "" if by == "last" else f" with a {by}"
        raise TandemError(
            f"{run} has no whole checkpoint{scored} in {RunLayout(run).checkpoints}: name a run that has some."
        )
    if count is not None and len(ranked) < count:
        raise TandemError(
            f"{run} has {len(ranked)} whole checkpoints to choose from, not {count}: give a smaller --count, or keep "
            "more of them with checkpoint.keep_last or checkpoint.keep_best."
        )
    return sorted(ranked[: count or COUNT], key=lambda info: info.step)
