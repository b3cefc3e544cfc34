"""Subword pieces grouped into the words that they spell."""

from collections.abc import Sequence

__all__ = ["words_of"]

BEGINS = "▁"
"""Begins a piece that begins a word, as SentencePiece writes it."""
CONTINUES = "@@"
"""Ends a piece that goes on in the next one, as subword-nmt writes it."""


def words_of(pieces: Sequence[str]) -> list[list[str]]:
    """The pieces of each word, without the marks that say where words begin or go on."""
    if any(piece.startswith(BEGINS) for piece in pieces):
        return _by_beginning(pieces)
    return _by_continuing(pieces)


def _by_beginning(pieces: Sequence[str]) -> list[list[str]]:
    words: list[list[str]] = []
    for piece in pieces:
        if piece.startswith(BEGINS) or not words:
            words.append([])
        # A mark that is a piece of its own stays, or the piece would not be seen.
        words[-1].append(piece.removeprefix(BEGINS) or piece)
    return words


def _by_continuing(pieces: Sequence[str]) -> list[list[str]]:
    words: list[list[str]] = []
    continues = False
    for piece in pieces:
        if not continues:
            words.append([])
        continues = piece.endswith(CONTINUES) and piece != CONTINUES
        words[-1].append(piece.removesuffix(CONTINUES) if continues else piece)
    return words
