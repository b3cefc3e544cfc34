"""HTML whose text is exchanged for its translation: sentences are kept together, and tags go with their words."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations, groupby, islice
from typing import TypeAlias

from tandem.serve.markup import Piece, cut_markup
from tandem.translate.translator import Translation

__all__ = ["Hypertext", "build_hypertext"]

Span: TypeAlias = tuple[int, int]

MOST_ELEMENTS = 32
"""Of a passage: the time to find places for their tags grows with them times the words."""

HARD_SPACE = re.compile(r"&(?:nbsp|#160|#[xX][aA]0);?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """An inline element of a passage."""

    before: str
    after: str
    span: Span
    """Of the passage's text."""
    is_left: bool = False
    """`before` is all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passage:
    """Text with the inline markup in it: what stands between two pieces that part sentences."""

    pieces: Sequence[Piece]
    text: str
    elements: Sequence[_Element]
    """Those that an alignment may find places for, inner before outer ones."""
    lines: Sequence[str]
    """What to translate: the text where there are such elements, and each run of letters between tags."""

    def rewritten(self, found: Sequence[Translation]) -> str:
        """The passage with its lines translated."""
        if self.elements:
            whole, *found = found
            placed = self._placed(whole)
            if placed is not None:
                return placed
        left = iter(found)
        return "".join(
            _rewritten(piece, next(left)) if _is_run(piece) else piece.raw for piece in self.pieces
        )

    def _placed(self, found: Translation) -> str | None:
        """The translation of the text with the elements' tags in it; none where it leaves their places open."""
        if found.text == self.text:
            return "".join(piece.raw for piece in self.pieces)
        places = [_place(element, found, text=self.text) for element in self.elements]
        known = [place for place in places if place is not None]
        if len(known) < len(places) or not _is_nested(self.elements, known):
            return None
        first, *_, last = (piece for piece in self.pieces if piece.kind in {"text", "left"})
        return _edges(first)[0] + _tagged(found.text, self.elements, known) + _edges(last)[1]


def _build_passage(pieces: Sequence[Piece]) -> _Passage:
    runs = [piece.text.strip() for piece in pieces if _is_run(piece)]
    text, elements = _read_elements(pieces)
    if not runs or len(elements) > MOST_ELEMENTS or sum(bool(piece.text.strip()) for piece in pieces) < 2:
        elements = []
    return _Passage(pieces=pieces, text=text, elements=elements, lines=[text, *runs] if elements else runs)


def _read_elements(pieces: Iterable[Piece]) -> tuple[str, list[_Element]]:
    """The text of all pieces, and the elements in it; none where they do not nest."""
    text, elements = "", list[_Element]()
    opened: list[tuple[Piece, int]] = []
    for piece in pieces:
        start = len(text)
        text += piece.text if text and not text.endswith(" ") else piece.text.lstrip()
        if piece.kind == "open":
            opened.append((piece, start))
        elif piece.kind == "left":
            elements.append(_Element(before=piece.raw, after="", span=(start, len(text)), is_left=True))
        elif piece.kind == "close":
            if not opened or opened[-1][0].tag != piece.tag:
                return "", []
            first, start = opened.pop()
            elements.append(_Element(before=first.raw, after=piece.raw, span=(start, len(text))))
    return ("", []) if opened else (text.strip(), elements)


def _is_run(piece: Piece) -> bool:
    return piece.kind == "text" and any(map(str.isalpha, piece.text))


def _rewritten(piece: Piece, found: Translation) -> str:
    if found.text in {"", piece.text.strip()}:  # what the model has no words for is kept
        return piece.raw
    before, behind = _edges(piece)
    return before + _escaped(found.text) + behind


def _edges(piece: Piece) -> tuple[str, str]:
    """White space before and behind a text, as it was written."""
    if piece.kind != "text":
        return "", ""
    seen = HARD_SPACE.sub(lambda found: " " * len(found[0]), piece.raw)
    return piece.raw[: len(seen) - len(seen.lstrip())], piece.raw[len(seen.rstrip()) :]


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def _place(element: _Element, found: Translation, *, text: str) -> Span | None:
    """Where in a translation an element's words stand: the longest group of them; none where they are not found."""
    start, end = element.span
    said = text[start:end].strip()
    if said == text and found.text:
        return 0, len(found.text)
    all_links = Counter(link.target for link in found.alignment)
    own = Counter(
        link.target for link in found.alignment if start <= link.source[0] and link.source[1] <= end
    )
    groups = groupby(sorted(all_links), key=lambda word: 2 * own[word] >= all_links[word])
    places = [(words[0][0], words[-1][1]) for words in (list(some) for is_own, some in groups if is_own)]
    place = max(places, key=lambda place: sum(map(str.isalnum, found.text[slice(*place)])), default=None)
    return None if place and element.is_left and found.text[slice(*place)] != said else place


def _is_nested(elements: Sequence[_Element], places: Sequence[Span]) -> bool:
    """Whether elements stand in and beside each other at their places as they did before."""
    pairs = combinations(zip((element.span for element in elements), places, strict=True), 2)
    return all(
        _is_within(inner, outer) if _is_within(one, other) else inner[1] <= outer[0] or outer[1] <= inner[0]
        for (one, inner), (other, outer) in pairs
    )


def _is_within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _tagged(text: str, elements: Sequence[_Element], places: Sequence[Span]) -> str:
    """The text with the tags of elements at their places, which nest as the elements do."""
    # Where several stand at one place: what ends there before what begins; inner ends and outer begins first.
    tags = [(end, 0, number, number) for number, (_, end) in enumerate(places)]
    tags += [(start, 1, -number, number) for number, (start, _) in enumerate(places)]
    parts, done = list[str](), 0
    for at, begins, _, number in sorted(tags):
        element = elements[number]
        parts += [_escaped(text[done:at]), element.before if begins else element.after]
        done = places[number][1] if begins and element.is_left else at
    return "".join([*parts, _escaped(text[done:])])


class Hypertext:
    """HTML whose text can be exchanged."""

    def __init__(self, parts: Sequence[str | _Passage]) -> None:
        """`parts` are passages, and what stays as it is."""
        passages = [part for part in parts if isinstance(part, _Passage)]
        self._parts = parts
        self.lines = [line for passage in passages for line in passage.lines]
        """What to translate."""
        self.needs_alignment = any(passage.elements for passage in passages)
        """Whether translations of the lines must say which words came of which."""

    def rewritten(self, found: Sequence[Translation]) -> str:
        """The HTML with the translations of its lines in their place."""
        left = iter(found)
        return "".join(
            part if isinstance(part, str) else part.rewritten(list(islice(left, len(part.lines))))
            for part in self._parts
        )


def build_hypertext(html: str) -> Hypertext:
    """Take HTML apart, however it is formed."""
    pieces = (piece for piece in cut_markup(html) if piece.raw)
    return Hypertext(
        [
            "".join(piece.raw for piece in some) if is_break else _build_passage(list(some))
            for is_break, some in groupby(pieces, key=lambda piece: piece.kind == "break")
        ]
    )
