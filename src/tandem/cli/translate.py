"""`tandem translate`: lines of text from standard input, or sentences typed by a person."""

# Imports wait until a command runs, so that --help answers at once.

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from tandem.cli.paths import near
from tandem.errors import TandemError

if TYPE_CHECKING:
    import torch

    from tandem.translate.translator import Translator

__all__ = ["converse", "translate"]

CHUNK_LINES = 1_000
"""Lines taken together: many, so that a batch holds lines of like length; not all, so that output begins soon."""


def translate(
    model: Annotated[
        Path, typer.Argument(help="A run, whose best checkpoint is taken, or a checkpoint folder.")
    ],
    *,
    beam: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Hypotheses followed side by side; the recipe's if not given."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one.")] = "auto",
) -> None:
    """Translate standard input line by line; in a terminal, each sentence as it is typed."""
    from tandem.checkpoint.bundle import find_bundle
    from tandem.translate.open import open_translator

    folder = find_bundle(model)
    translator = open_translator(folder, _find_device(device), beam=beam)
    if sys.stdin.isatty():
        typer.echo(
            f"Translating with {near(folder)}. Type a sentence and press Enter; Ctrl-D ends.", err=True
        )
        converse(translator)
        return
    lines = _read_lines(sys.stdin.buffer)
    done = 0
    while chunk := list(islice(lines, CHUNK_LINES)):
        for translation in translator.translate(chunk, first_line=done + 1):
            typer.echo(translation.text)
        done += len(chunk)


def _find_device(name: str) -> "torch.device":
    import torch

    if name not in {"auto", "cpu", "cuda"}:
        raise TandemError(f"There is no device {name!r}: use cpu, cuda or auto.")
    has_gpu = torch.cuda.is_available()
    if name == "cuda" and not has_gpu:
        raise TandemError("This machine has no GPU that PyTorch can use: take --device cpu.")
    return torch.device("cuda" if has_gpu and name != "cpu" else "cpu")


def _read_lines(stream: BinaryIO) -> Iterator[str]:
    # Bytes, since only a newline parts lines: text mode would also cut at a lone carriage return.
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise TandemError(f"Line {number:,} of the input is not UTF-8: convert it first.") from None


def converse(translator: "Translator") -> None:
    """Translate each sentence that a person types, until Ctrl-D."""
    with suppress(ImportError):
        import readline  # noqa: F401  (gives `input` line editing and a history)
    while True:
        try:
            line = input("> ")
        except EOFError:
            typer.echo(err=True)
            return
        try:
            typer.echo(translator.translate([line])[0].text)
        except TandemError as error:
            typer.echo(f"error: {error}", err=True)
