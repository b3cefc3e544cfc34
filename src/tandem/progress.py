"""How long work reports its progress without knowing who shows it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["SILENT", "Bar", "Progress", "Silent"]


class Bar(Protocol):
    """One running piece of work."""

    def advance(self, amount: int) -> None:
        """Say that `amount` more units are done."""


class Progress(Protocol):
    """Where long work announces itself."""

    def bar(self, task: str, *, total: int | None = None, unit: str = "") -> AbstractContextManager[Bar]:
        """Open a bar for `task`; `total` None means the end is not known. Unit "B" counts bytes."""

    def say(self, text: str) -> None:
        """Print one line above the bars."""


class Silent:
    """Progress for nobody: tests, libraries and background work."""

    @contextmanager
    def bar(self, task: str, *, total: int | None = None, unit: str = "") -> Iterator["Silent"]:  # noqa: ARG002
        """Return itself: a silent bar needs no state."""
        yield self

    def advance(self, amount: int) -> None:
        """Ignore."""

    def say(self, text: str) -> None:
        """Ignore."""


SILENT = Silent()
