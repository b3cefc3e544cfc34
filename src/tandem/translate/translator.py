"""Text to text: lines of any length and number, in sentences that an engine can take."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TypeAlias

import numpy as np

from tandem.data.shards.ragged import Ragged
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.translate.alignment import Link
from tandem.translate.engine import Engine, Found, Sentence, stream_search
from tandem.translate.split import split_line, split_sentences
from tandem.translate.telling import Part, Token, Translation, tell
from tandem.translate.wish import Wish

__all__ = [
    "MOST_PIECES",
    "Chunk",
    "Link",
    "Mend",
    "Token",
    "Translation",
    "Translator",
    "most_target_pieces",
]

Mend: TypeAlias = Callable[[str], str]
Ids: TypeAlias = tuple[int, ...]
Chunk: TypeAlias = tuple[Sequence[str], Sequence[str] | None]
"""Lines, and for each the words that its translation must begin with."""

MOST_PIECES = 256
"""Pieces of the longest line that is translated as it is, where the recipe does not say what the model has seen."""

SURELY_LONG_CHARACTERS = 32
"""A line of more characters for each piece that is allowed is split without being encoded as a whole."""


def most_target_pieces(source_pieces: int) -> int:
    """Where the search ends a translation that would not end by itself."""
    return source_pieces * 3 // 2 + 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line on its way: the parts that it is translated in; none for an empty one."""

    given: str
    sources: tuple[Ids, ...]
    prefix: Ids = ()


class Translator:
    """Translates lines of text with one model."""

    def __init__(
        self,
        engine: Engine,
        subword: Subword,
        *,
        wish: Wish | None = None,
        mend: Mend = str,
        most_pieces: int = MOST_PIECES,
        languages: tuple[str, str] = ("", ""),
        sentences: bool = True,
    ) -> None:
        """`mend` brings lines into the form of the text that the model learned from.

        Lines are translated sentence by sentence: a model that learned from single ones leaves out some of several.
        Without `sentences` only lines of more pieces than `most_pieces` are split.
        `wish` holds where a call says nothing else.
        """
        self.engine, self.subword = engine, subword
        self.wish = wish or Wish()
        self.languages = languages
        """Codes of source and target; empty where they are not known."""
        self._mend, self._most_pieces, self._by_sentence = mend, most_pieces, sentences

    def translate(
        self, lines: Sequence[str], wish: Wish | None = None, *, prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """The translation of each line, in order; an empty line stays empty.

        `prefixes` has for each line whole words that its translation must begin with, or nothing.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines, not one line: give [line].")
        return next(self.stream([(lines, prefixes)], wish))

    def stream(self, chunks: Iterable[Chunk], wish: Wish | None = None) -> Iterator[list[Translation]]:
        """The translations of chunks of lines, each in turn.

        An engine that computes by itself is given the next chunk before one is told. Where a chunk is refused, those
        before it are told first.
        """
        wish = wish or self.wish
        taken: deque[list[_Line]] = deque()
        refused: list[TandemError] = []

        def sentences() -> Iterator[list[Sentence]]:
            try:
                for lines, prefixes in chunks:
                    taken.append(self._lines(lines, prefixes))
                    yield _sentences(taken[-1])
            except TandemError as error:
                refused.append(error)

        for found in stream_search(self.engine, sentences(), wish):
            yield self._told(taken.popleft(), found, wish)
        if refused:
            raise refused[0]

    def translate_ids(self, sources: Ragged, wish: Wish | None = None) -> list[Translation]:
        """The translations of encoded sentences, given without marks; however long, they are not split."""
        wish = wish or self.wish
        read = self.subword.source.decode if wish.alignment else _unread
        rows = _rows(sources)
        lines = [_Line(given=read(row), sources=(row,) if row else ()) for row in rows]
        return self._told(lines, next(stream_search(self.engine, [_sentences(lines)], wish)), wish)

    def _lines(self, lines: Sequence[str], prefixes: Sequence[str] | None) -> list[_Line]:
        starts = self._encode_prefixes(prefixes, len(lines))
        sources = self._encode_lines([self._clean(line) for line in lines])
        return [
            _Line(given=line, sources=parts, prefix=prefix)
            for line, parts, prefix in zip(lines, sources, starts, strict=True)
        ]

    def _told(self, lines: Sequence[_Line], found: Sequence[list[Found]], wish: Wish) -> list[Translation]:
        each = iter(found)
        return [self._tell(line, list(islice(each, len(line.sources))), wish) for line in lines]

    def _tell(self, line: _Line, found: list[list[Found]], wish: Wish) -> Translation:
        """The best translation of a line, with the others that were found."""
        if not all(found):  # the model has diverged
            return Translation(text="", score=float("-inf"), pieces=0)
        told = [
            tell(
                # Of a part with fewer translations than another has, the last one serves again.
                [
                    Part(source=source, found=some[min(rank, len(some) - 1)])
                    for source, some in zip(line.sources, found, strict=True)
                ],
                subword=self.subword,
                given=line.given,
                wish=wish,
            )
            for rank in range(max(map(len, found), default=1))
        ]
        return replace(told[0], others=tuple(told[1:])) if len(told) > 1 else told[0]

    def _clean(self, line: str) -> str:
        """The line as the model learned to read; what is no Unicode text becomes a replacement character."""
        mended = self._mend(line)
        if mended.isascii():
            return mended
        return mended.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _encode_lines(self, lines: Sequence[str]) -> list[tuple[Ids, ...]]:
        """The pieces of each line, in one part where it is short enough."""
        longest = self._most_pieces * SURELY_LONG_CHARACTERS
        rows = self._encode([line if len(line) <= longest else "" for line in lines])
        return [
            self._split(line)
            if len(line) > longest or len(row) > self._most_pieces or self._has_sentences(line)
            else ((row,) if row else ())
            for line, row in zip(lines, rows, strict=True)
        ]

    def _has_sentences(self, line: str) -> bool:
        """Whether the line holds several sentences that shall be translated each for itself."""
        return self._by_sentence and len(split_sentences(line)) > 1

    def _split(self, line: str) -> tuple[Ids, ...]:
        parts = split_line(line, self._lengths, most=self._most_pieces)
        return tuple(row for row in self._encode(parts) if row)

    def _encode_prefixes(self, prefixes: Sequence[str] | None, lines: int) -> list[Ids]:
        if prefixes is None:
            return [()] * lines
        if len(prefixes) != lines:
            raise TandemError(
                f"There are {len(prefixes):,} prefixes for {lines:,} lines: give one for each line, empty for none."
            )
        rows = _rows(self.subword.target.encode([self._clean(prefix) for prefix in prefixes]))
        for number, row in enumerate(rows, start=1):
            if len(row) > self._most_pieces:
                raise TandemError(
                    f"Prefix {number:,} has {len(row):,} pieces, but at most {self._most_pieces:,} can be forced: "
                    "give the first words only."
                )
        return rows

    def _encode(self, texts: Sequence[str]) -> list[Ids]:
        return _rows(self.subword.source.encode(texts))

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        lengths: list[int] = self.subword.source.encode(texts).lengths.tolist()
        return lengths


def _unread(_: Ids) -> str:
    """The text of a line that nobody will look at."""
    return ""


def _rows(ragged: Ragged) -> list[Ids]:
    ids: list[int] = ragged.ids.tolist()
    ends: list[int] = np.cumsum(ragged.lengths, dtype=np.int64).tolist()
    return [tuple(ids[start:end]) for start, end in pairwise([0, *ends])]


def _sentences(lines: Sequence[_Line]) -> list[Sentence]:
    return [sentence for line in lines for sentence in _parts(line)]


def _parts(line: _Line) -> Iterator[Sentence]:
    for number, source in enumerate(line.sources):
        prefix = line.prefix if number == 0 else ()
        yield Sentence(
            source=source,
            prefix=prefix,
            most=most_target_pieces(len(source)) + len(prefix),
            number=number,
        )
