"""`tandem import`: what other tools trained: runs to be reported on, and models to be used."""

# Imports wait until a command runs, so that --help answers at once.

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tandem.cli.paths import near
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.observe.imports import Imported, Observed

__all__ = ["app"]

SHOWN_TAGS = 12

app = typer.Typer(
    no_args_is_help=True,
    help="Read a run that another tool trained, to report on it, or its model, to use it.",
)

RunOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--run", help="The run's folder; runs/ and the name of what is read by default."),
]
NicOption: TypeAlias = Annotated[
    str, typer.Option("--nic-rate", help="What an interface was seen to carry while it trained, as 220MB/s.")
]
LinkOption: TypeAlias = Annotated[
    str, typer.Option("--link", help="What the link between the hosts can carry, as 1gbit.")
]
BusyOption: TypeAlias = Annotated[
    str, typer.Option("--gpu-utilisation", help="What nvidia-smi showed, in percent.")
]


@app.command("openseq2seq")
def openseq2seq(
    log: Annotated[Path, typer.Argument(help="What it printed; .xz, .gz and .bz2 are unpacked.")],
    *,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder of its event files.")] = None,
    run: RunOption = None,
    nic_rate: NicOption = "",
    link: LinkOption = "",
    gpu_utilisation: BusyOption = "",
    start: Annotated[str, typer.Option(help="When it began, as 2020-06-26T15:36; UTC unless it says.")] = "",
) -> None:
    """Read the console log of OpenSeq2Seq, with or without Horovod."""
    from tandem.cli.bars import Bars
    from tandem.observe.imports import import_openseq2seq

    with Bars() as progress:
        imported = import_openseq2seq(
            log,
            run or Path("runs") / _name(log),
            tensorboard=tensorboard,
            observed=_observed(nic_rate, link, gpu_utilisation),
            start=_time(start),
            progress=progress,
        )
    _tell(imported)


@app.command("tensorboard")
def tensorboard(
    folder: Annotated[Path, typer.Argument(help="Folder of event files; those in its folders count too.")],
    *,
    run: RunOption = None,
    nic_rate: NicOption = "",
    link: LinkOption = "",
    gpu_utilisation: BusyOption = "",
) -> None:
    """Read the curves that any tool wrote for TensorBoard."""
    from tandem.cli.bars import Bars
    from tandem.observe.imports import import_tensorboard

    with Bars() as progress:
        imported = import_tensorboard(
            folder,
            run or Path("runs") / _name(folder),
            observed=_observed(nic_rate, link, gpu_utilisation),
            progress=progress,
        )
    _tell(imported)


@app.command("huggingface")
def huggingface(
    folder: Annotated[
        Path, typer.Argument(help="A model that tandem export wrote, or one with the same waves and no bias.")
    ],
    target: Annotated[Path, typer.Argument(help="The folder to make; tandem translate takes it.")],
    *,
    languages: Annotated[str, typer.Option(help="What it translates from and into.")] = "en-de",
) -> None:
    """Read a model in Hugging Face's format that Tandem exported, to translate with it or to train it further.

    Other Marian and Pegasus models come back only if their files hold the same position waves and a final_logits_bias
    of zero; OPUS-MT models do not.
    """
    from tandem.cli.bars import Bars
    from tandem.export.from_huggingface import import_huggingface

    source, _, into = languages.partition("-")
    with Bars() as progress:
        import_huggingface(folder, target, languages=(source, into), progress=progress)
    typer.echo(f"{near(target)} translates.")
    joint = target / "subword.model"
    if joint.is_file():
        typer.echo(f"train it further with: train.start_from={near(target)} subword.model={near(joint)}")


def _name(source: Path) -> str:
    """The name of what is read, up to its first dot."""
    name = source.resolve().name.split(".")[0]
    if not name:
        raise TandemError(f"{source} gives the run no name: say one with --run.")
    return name


def _observed(nic_rate: str, link: str, gpu_utilisation: str) -> "Observed":
    from tandem.observe.imports import Observed, read_bits_per_s, read_bytes_per_s, read_share

    return Observed(
        nic_bytes_per_s=read_bytes_per_s(nic_rate) if nic_rate else None,
        link_bits_per_s=read_bits_per_s(link) if link else None,
        gpu_utilisation=read_share(gpu_utilisation) if gpu_utilisation else None,
    )


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise TandemError(f"--start {text!r} is no time: write it as 2020-06-26T15:36:42.") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _tell(imported: "Imported") -> None:
    from tandem.observe.visible import visible

    parts = [
        f"{imported.steps:,} records of steps {imported.first_step:,} to {imported.last_step:,}",
        f"{imported.evaluations} evaluations" if imported.evaluations != 1 else "1 evaluation",
        *([f"{imported.restarts} restarts"] if imported.restarts else ()),
        *([f"{imported.torn} files with a torn end"] if imported.torn else ()),
    ]
    typer.echo(f"{near(imported.run)}: {', '.join(parts)}")
    typer.echo(visible(f"not told by the files: {', '.join(imported.untold)}"))
    if imported.unused:
        more = f" and {len(imported.unused) - SHOWN_TAGS} more" if len(imported.unused) > SHOWN_TAGS else ""
        typer.echo(visible(f"curves not used: {', '.join(imported.unused[:SHOWN_TAGS])}{more}"))
    typer.echo(f"go on with: tandem report {near(imported.run)}")
