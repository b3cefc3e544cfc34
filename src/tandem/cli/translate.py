"""`tandem translate`: lines of text from standard input, or sentences typed by a person."""

# Imports wait until a command runs, so that --help answers at once.

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
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
    WholeLinesOption,
)
from tandem.errors import TandemError
from tandem.progress import SILENT, Bar

if TYPE_CHECKING:
    from tandem.translate.translator import Chunk, Translator
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
    whole_lines: WholeLinesOption = False,
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
            sentences=not whole_lines,
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
        size = _maybe_size()
        with _bar(size) as bar, prefix_file.open("rb") if prefix_file else nullcontext() as file:
            prefixes = None if file is None else _decoded(file, str(prefix_file))
            try:
                is_ready = size is not None and (prefix_file is None or prefix_file.is_file())
                self._translate(_Input(prefixes=prefixes), bar, ahead=is_ready)
            except BrokenPipeError:
                _leave_closed_pipe()

    def _translate(self, given: "_Input", bar: Bar, *, ahead: bool) -> None:
        """With `ahead` lines are read before translations of others are written; a pipe may be slow to give them."""
        from tandem.observe.visible import visible_lines

        # What steers a terminal may stand in the vocabulary of a stranger's model; a file or a pipe gets it as it is.
        show: Callable[[str], str] = visible_lines if sys.stdout.isatty() else str
        done = 0
        chunks = given.chunks(sys.stdin.buffer)
        streams = [chunks] if ahead else ([chunk] for chunk in chunks)
        for stream in streams:
            for told in self.translator.stream(stream, self.wish):
                for number, each in enumerate(told, start=done + 1):
                    sys.stdout.writelines(f"{show(line)}\n" for line in self.write(each, number))
                sys.stdout.flush()
                done += len(told)
                bar.advance(given.sizes.popleft())
        given.refuse_superfluous(done)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """Lines with their prefixes, where there are such."""

    prefixes: Iterator[str] | None
    sizes: deque[int] = field(default_factory=deque)
    """Bytes of each chunk that is not translated yet."""

    def chunks(self, lines: BinaryIO) -> "Iterator[Chunk]":
        """The lines of a file, many at a time."""
        done = 0
        for chunk in _chunks(lines):
            texts = list(_decoded(chunk, "the input", first=done + 1))
            starts = None if self.prefixes is None else list(islice(self.prefixes, len(texts)))
            if starts is not None and len(starts) < len(texts):
                raise TandemError(
                    f"The file of prefixes has {done + len(starts):,} lines, fewer than the input: give one for each "
                    "line, empty for none."
                )
            self.sizes.append(sum(map(len, chunk)))
            done += len(texts)
            yield texts, starts

    def refuse_superfluous(self, lines: int) -> None:
        """Refuse prefixes that none of the lines is left for."""
        if self.prefixes is not None and next(self.prefixes, None) is not None:
            raise TandemError(
                f"The file of prefixes has more lines than the input, which has {lines:,}: give one for each line."
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


def _maybe_size() -> int | None:
    """Bytes of the input; None where it is no file."""
    try:
        held = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError):
        return None
    return held.st_size if stat.S_ISREG(held.st_mode) else None


@contextmanager
def _bar(size: int | None) -> Iterator[Bar]:
    """A bar where the input's size is known, and translations do not run through the same terminal."""
    from tandem.cli.bars import Bars

    if size is None or sys.stdout.isatty():
        with SILENT.bar("") as bar:
            yield bar
        return
    with Bars() as bars, bars.bar("translating", total=size, unit="B") as shown:
        yield shown


def _leave_closed_pipe() -> None:
    """End as a program does whose reader has gone; what is still buffered has nobody to read it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stderr.write("stopped: nothing reads the translations any more.\n")
    raise typer.Exit(PIPE_CLOSED)
