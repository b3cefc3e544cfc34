"""`tandem export`: a trained model in the form that another tool runs."""

# Imports wait until a command runs, so that --help answers at once.

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tandem.cli.paths import near
from tandem.errors import TandemError

if TYPE_CHECKING:
    from tandem.export.verify import Verified
    from tandem.progress import Progress

__all__ = ["export"]

Form = Literal["ctranslate2", "huggingface", "bundle"]
Quantization = Literal["float32", "float16", "bfloat16", "int8"]

_READERS = {
    "ctranslate2": "CTranslate2 and tandem translate",
    "huggingface": "Hugging Face transformers",
    "bundle": "tandem translate",
}


def export(
    model: Annotated[
        Path, typer.Argument(help="A run, whose best checkpoint is taken; a checkpoint or a bundle.")
    ],
    target: Annotated[Path, typer.Argument(help="The folder to make.")],
    *,
    to: Annotated[Form, typer.Option("--to", help="What shall run it.")] = "ctranslate2",
    quantization: Annotated[
        Quantization | None,
        typer.Option(
            help="How CTranslate2 keeps weights; float32 keeps all of their digits, int8 is fastest."
        ),
    ] = None,
) -> None:
    """Export a model, and verify that it translates as before: no other folder is left behind."""
    from tandem.checkpoint.bundle import find_bundle
    from tandem.cli.bars import Bars

    if to != "ctranslate2" and quantization is not None:
        raise TandemError(f"--quantization is for CTranslate2 alone: leave it out with --to {to}.")
    folder = find_bundle(model)
    with Bars() as bars:
        verified = _export(folder, target, to=to, quantization=quantization or "float32", progress=bars)
    typer.echo(f"{near(target)} holds {near(folder)} for {_READERS[to]}.")
    typer.echo(f"{verified}.")


def _export(
    folder: Path, target: Path, *, to: Form, quantization: Quantization, progress: "Progress"
) -> "Verified":
    if to == "bundle":
        from tandem.export.bundle import export_bundle

        return export_bundle(folder, target, progress=progress)
    if to == "huggingface":
        from tandem.export.huggingface import export_huggingface

        return export_huggingface(folder, target, progress=progress)
    from tandem.export.ctranslate2 import export_ctranslate2

    return export_ctranslate2(folder, target, quantization=quantization, progress=progress)
