"""What the server translates with: a name, two languages and something that translates lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tandem.errors import TandemError
from tandem.translate.translator import Translation
from tandem.translate.wish import Wish

__all__ = ["LineTranslator", "ServedModel", "check_names"]


class LineTranslator(Protocol):
    """Translates lines; called from one thread at a time."""

    def translate(self, lines: Sequence[str], wish: Wish) -> Sequence[Translation]:
        """The translation of each line, in their order; an empty line stays empty."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model of the server."""

    name: str
    source: str
    """Language code."""
    target: str
    translator: LineTranslator
    wish: Wish
    """How it searches where a request does not say."""


def check_names(models: Sequence[ServedModel]) -> None:
    """Refuse models that a request could not tell apart."""
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise TandemError(f"Two models are called {name!r}: give one another name, as in other={name}.")
