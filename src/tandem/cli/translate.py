"""`tandem translate`: lines of text from standard input, or sentences typed by a person."""

# Imports wait until a command runs, so that --help answers at once.

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, TypeAlias

import typer

from tandem.cli.formats import Format, Write, build_writer, choose_format
from tandem.cli.paths import near
from tandem.cli.searching import (
    AlignmentOption,
    AlphaOption,
    BeamOption,
    BestOption,
    GreedyOption,
    PenaltyOption,
    SampleOption,
    ScoresOption,
    SeedOption,
    TemperatureOption,
    TokensOption,
    TopOption,
    Wanted,
)
from tandem.errors import TandemError
from tandem.progress import SILENT, Bar

if TYPE_CHECKING:
    from tandem.translate.translator import Translator
    from tandem.translate.wish import Wish

__all__ = ["translate"]

CHUNK_LINES = 1_000
"""Lines taken together: many, so that a batch holds lines of like length; not all, so that output begins soon."""
CHUNK_BYTES = 2_000_000
"""Or fewer, where they are long."""
PIPE_CLOSED = 141
"""What a shell calls the end by SIGPIPE."""


ModelArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(help="A run, whose best checkpoint is taken; a checkpoint, a bundle, an exported folder."),
]
PrefixOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="File with the words that each line's translation must begin with.")
]
EngineOption: TypeAlias = Annotated[
    Literal["auto", "torch", "ctranslate2"],
    typer.Option(help="auto: CTranslate2 on a CPU where it is installed, else torch."),
]
DeviceOption: TypeAlias = Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one.")]
PrecisionOption: TypeAlias = Annotated[
    Literal["float32", "bfloat16"],
    typer.Option(help="Numbers of the engine torch; bfloat16 takes half the memory and may change a word."),
]
BatchOption: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Source tokens of a batch; what suits the device if not given.")
]
ThreadsOption: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="CPU threads; all cores if not given.")
]
InteractiveOption: TypeAlias = Annotated[
    bool, typer.Option("--interactive", help="Ask for sentences; so does a terminal as input.")
]
FormatOption: TypeAlias = Annotated[
    Format | None,
    typer.Option("--format", help="The simplest that can hold what is told, if not given."),
]


def translate(
    model: ModelArgument,
    *,
    beam: BeamOption = None,
    alpha: AlphaOption = None,
    penalty: PenaltyOption = "gnmt",
    greedy: GreedyOption = False,
    sample: SampleOption = False,
    temperature: TemperatureOption = None,
    top: TopOption = None,
    seed: SeedOption = None,
    best: BestOption = 1,
    scores: ScoresOption = False,
    tokens: TokensOption = False,
    alignment: AlignmentOption = False,
    prefix_file: PrefixOption = None,
    engine: EngineOption = "auto",
    device: DeviceOption = "auto",
    precision: PrecisionOption = "float32",
    batch_tokens: BatchOption = None,
    threads: ThreadsOption = None,
    interactive: InteractiveOption = False,
    kind: FormatOption = None,
) -> None:
    """Translate standard input line by line; in a terminal, each sentence as it is typed."""
    from tandem.cli.bars import Bars
    from tandem.cli.library import load_translator

    wanted = Wanted(
        beam=beam,
        alpha=alpha,
        penalty=penalty,
        greedy=greedy,
        best=best,
        sample=sample,
        temperature=temperature,
        top=top,
        seed=seed,
        tokens=tokens,
        alignment=alignment,
    )
    chosen = choose_format(kind, scores=scores, details=tokens or alignment, best=best)
    write = build_writer(chosen, tokens=tokens, alignment=alignment)
    with Bars() as bars:
        opened = load_translator(
            model,
            engine=engine,
            device=device,
            precision=precision,
            threads=threads,
            batch_tokens=batch_tokens,
            progress=bars,
        )
    wish = wanted.wish(opened.wish)
    if interactive or sys.stdin.isatty():
        _converse(opened, wish, model=model, write=write, prefix_file=prefix_file)
    else:
        _Stream(translator=opened, wish=wish, write=write).run(prefix_file)


def _converse(
    translator: "Translator", wish: "Wish", *, model: Path, write: Write, prefix_file: Path | None
) -> None:
    from tandem.cli.converse import converse

    if prefix_file is not None:
        raise TandemError("--prefix-file goes with lines from a file or a pipe, not with typed sentences.")
    typer.echo(f"Translating with {near(model)}. Type a sentence and press Enter; Ctrl-D ends.", err=True)
    converse(translator, wish, write=write)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """Lines through a pipe or from a file, in chunks."""

    translator: "Translator"
    wish: "Wish"
    write: Write

    def run(self, prefix_file: Path | None) -> None:
        """Translate standard input to standard output."""
        with _bar() as bar, prefix_file.open("rb") if prefix_file else nullcontext() as file:
            prefixes = None if file is None else _decoded(file, str(prefix_file))
            try:
                self._translate(sys.stdin.buffer, prefixes, bar)
            except BrokenPipeError:
                _leave_closed_pipe()

    def _translate(self, lines: BinaryIO, prefixes: Iterator[str] | None, bar: Bar) -> None:
        done = 0
        for chunk in _chunks(lines):
            texts = list(_decoded(chunk, "the input", first=done + 1))
            starts = None if prefixes is None else list(islice(prefixes, len(texts)))
            if starts is not None and len(starts) < len(texts):
                raise TandemError(
                    f"The file of prefixes has {done + len(starts):,} lines, fewer than the input: give one for each "
                    "line, empty for none."
                )
            for number, told in enumerate(
                self.translator.translate(texts, self.wish, prefixes=starts), start=done + 1
            ):
                sys.stdout.writelines(f"{line}\n" for line in self.write(told, number))
            sys.stdout.flush()
            done += len(texts)
            bar.advance(sum(map(len, chunk)))
        if prefixes is not None and next(prefixes, None) is not None:
            raise TandemError(
                f"The file of prefixes has more lines than the input, which has {done:,}: give one for each line."
            )


def _chunks(stream: BinaryIO) -> Iterator[list[bytes]]:
    # Bytes, since only a newline parts lines: text mode would also cut at a lone carriage return.
    chunk, size = [], 0
    for line in stream:
        chunk.append(line)
        size += len(line)
        if len(chunk) == CHUNK_LINES or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _decoded(lines: Iterable[bytes], where: str, *, first: int = 1) -> Iterator[str]:
    for number, line in enumerate(lines, start=first):
        try:
            yield line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise TandemError(f"Line {number:,} of {where} is not UTF-8: convert it first.") from None


@contextmanager
def _bar() -> Iterator[Bar]:
    """A bar where the input is a file, whose size is known, and translations do not run through the same terminal."""
    from tandem.cli.bars import Bars

    try:
        held = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError):
        held = None
    if held is None or not stat.S_ISREG(held.st_mode) or sys.stdout.isatty():
        with SILENT.bar("") as bar:
            yield bar
        return
    with Bars() as bars, bars.bar("translating", total=held.st_size, unit="B") as shown:
        yield shown


def _leave_closed_pipe() -> None:
    """End as a program does whose reader has gone; what is still buffered has nobody to read it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stderr.write("stopped: nothing reads the translations any more.\n")
    raise typer.Exit(PIPE_CLOSED)
