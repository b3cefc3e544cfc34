"""Encoding word by word: a word's pieces are found once and remembered.

SentencePiece's BPE and unigram pieces do not reach over white space unless trained to, so the ids of a sentence are
those of its words, one after the other. A corpus repeats its words: looking them up is several times faster than
segmenting them again.
"""

import unicodedata
from collections.abc import Callable

__all__ = ["WordIds"]

WORDS_REMEMBERED = 1 << 17
"""About 28 MB. Beyond that everything is forgotten; frequent words are back at once."""


class _WholeSentence(Exception):  # noqa: N818  (a signal, not an error)
    """Raised for a word whose ids depend on what stands beside it."""


class WordIds(dict[str, bytes]):
    """Raw ids by word, filled as words are met."""

    def __init__(self, encode: Callable[[str], bytes]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, word: str) -> bytes:
        """Segment a new word."""
        # A doubled space, or a combining mark after a space, is normalised together with its neighbour.
        if not word or unicodedata.combining(word[0]):
            raise _WholeSentence
        if len(self) >= WORDS_REMEMBERED:
            self.clear()
        ids = self[word] = self._encode(word)
        return ids

    def sentence(self, sentence: str) -> bytes:
        """Raw ids of a sentence."""
        try:
            return b"".join(map(self.__getitem__, sentence.split(" ")))
        except _WholeSentence:
            return self._encode(sentence)
