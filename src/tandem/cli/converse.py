"""Sentences typed by a person, each answered at once."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from tandem.cli.library import state_folder
from tandem.errors import TandemError
from tandem.observe.visible import visible, visible_lines

if TYPE_CHECKING:
    from tandem.translate.translator import Translator
    from tandem.translate.wish import Wish

__all__ = ["converse"]

REMEMBERED_LINES = 1_000


def converse(
    translator: "Translator",
    wish: "Wish | None" = None,
    *,
    write: "Callable[..., Iterator[str]] | None" = None,
) -> None:
    """Translate each sentence that a person types, until Ctrl-D; arrow keys bring back earlier ones."""
    number = 0
    with _history():
        while (line := _maybe_typed()) is not None:
            number += 1
            try:
                (translation,) = translator.translate([line], wish)
            except TandemError as error:
                typer.echo(visible(f"error: {error}"), err=True)
                continue
            for told in write(translation, number) if write else [translation.text]:
                typer.echo(visible_lines(told))


def _maybe_typed() -> str | None:
    is_shown = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        # Elsewhere than in a terminal it would stand among the translations.
        return input("> " if is_shown else "")
    except EOFError:
        typer.echo(err=True)
        return None


@contextmanager
def _history() -> Iterator[None]:
    """Line editing, and a history that outlives the program, where the system has them."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = state_folder() / "translate-history"
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(REMEMBERED_LINES)
    try:
        yield
    finally:
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            readline.write_history_file(path)
