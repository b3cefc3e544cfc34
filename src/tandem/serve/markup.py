"""HTML taken apart and put together again: its text is translated, its markup stays as it was."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from html.parser import HTMLParser
from itertools import combinations, groupby, islice, pairwise
from typing import Literal, TypeAlias

from tandem.translate.translator import Translation

__all__ = ["Page", "build_page"]

Kind: TypeAlias = Literal["text", "open", "close", "left", "break"]
"""Text, an inline element's tags, an inline element that is left alone, and all that parts sentences."""
Span: TypeAlias = tuple[int, int]
Attributes: TypeAlias = list[tuple[str, str | None]]

_INLINE = """
a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q s samp small span strike strong sub sup
time tt u var
"""
INLINE = frozenset(_INLINE.split())
"""Elements that stand within a sentence; at the tags of all others one ends."""
_LEFT_ALONE = """
address applet audio canvas code iframe math noembed noframes plaintext pre script style svg textarea time video xmp
"""
LEFT_ALONE = frozenset(_LEFT_ALONE.split())
"""Elements whose content is not translated: those that LibreTranslate names, and others that hold no prose."""
_VOID = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(_VOID.split())
"""Elements that never have any content."""
FOREIGN = frozenset({"math", "svg"})

MOST_ELEMENTS = 32
"""Of a passage: the time to find places for their tags grows with them times the words."""

BROKEN = re.compile(r"<[A-Za-z/!?]")
"""What begins like markup, also where the parser takes it for text."""
QUOTE = re.compile("[\"']")
ENDED = re.compile(r"\A-?>|--!>")
"""In a comment: to a browser it has ended."""
SCRIPT = re.compile("<script", re.IGNORECASE)
HUGE = re.compile(r"&#[0-9]{9,};?")
"""Of no character; Python would not even read the number."""
HARD_SPACE = re.compile(r"&(?:nbsp|#160|#[xX][aA]0);?")
WHITE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    kind: Kind
    raw: str
    """As it was written."""
    tag: str = ""
    text: str = ""
    """What a reader sees of it."""


@dataclass(slots=True, kw_only=True)
class _Mark:
    """Where a piece begins."""

    at: int
    kind: Kind
    tag: str = ""
    opening: int = 0
    """Characters of the start tag of an element that is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """An inline element of a passage."""

    before: str
    after: str
    span: Span
    """Of the passage's text."""
    is_left: bool = False
    """`before` is all of it."""


class _Reader(HTMLParser):
    """Finds where pieces begin; an element that is left alone is one, and so is all from broken markup on."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.marks = [_Mark(at=0, kind="break")]
        self._given = html
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", html))]
        self._left, self._depth = "", 0  # the tag whose end is waited for, and how many of them
        # Behind the last > there is no whole tag, and the parser would look for one again and again.
        end = html.rfind(">") + 1
        try:
            # Pieces are cut from what was given: no need to read references, of which some raise.
            self.feed(html[:end].replace("&", "+"))
            self.close()
        except AssertionError:  # a marked section of an unknown kind
            self._give_up()
        else:
            self._mark("text", at=end)
        if self._left:
            self.marks[-1].kind = "break"

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        """Begin an element."""
        if any(QUOTE.search(name) for name, _ in attrs):  # one that is not closed
            self._give_up()
        elif self._left:
            self._depth += tag == self._left
            self._mark("break")
        elif tag not in VOID and (tag in LEFT_ALONE or _is_shut(attrs)):
            self._mark("left" if tag in INLINE else "break", tag)
            self.marks[-1].opening = len(self.get_starttag_text() or "")
            self._left, self._depth = tag, 1
        else:
            self._mark("open" if tag in INLINE else "break", tag)

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        self._depth -= tag == self._left
        if tag == "script" and self._is_escaped():
            self._give_up()
        elif self._left and not self._depth:
            self._left = ""
        else:
            self._mark("close" if tag in INLINE else "break", tag)

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self.cdata_elem is None and BROKEN.match(data):
            self._give_up()
        else:
            self._mark("text")

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        """Begin an element: to a browser the slash says something in drawings and formulas alone."""
        if tag in FOREIGN:
            self._mark("break")
        elif tag in self.CDATA_CONTENT_ELEMENTS:
            self._give_up()
        else:
            self.handle_starttag(tag, attrs)

    def handle_comment(self, data: str) -> None:
        """Take a comment."""
        end = self._here() + len("<!--") + len(data)
        is_long = self._given.startswith("<!--", self._here())
        if is_long and (ENDED.search(data) or not self._given.startswith("-->", end)):
            self._give_up()
        else:
            self._mark("break")

    def unknown_decl(self, data: str) -> None:
        """Take a marked section; to a browser it ends at the first >."""
        if ">" in data:
            self._give_up()
        else:
            self._mark("break")

    def handle_decl(self, decl: str) -> None:  # noqa: ARG002  (the library's signature)
        """Take a declaration."""
        self._mark("break")

    def handle_pi(self, data: str) -> None:  # noqa: ARG002
        """Take an instruction."""
        self._mark("break")

    def _give_up(self) -> None:
        """Leave alone all that follows: a browser reads it otherwise, and may see a tag where text is translated."""
        self._mark("break")
        self._left, self._depth = BROKEN.pattern, 1  # no such tag ends

    def _mark(self, kind: Kind, tag: str = "", *, at: int | None = None) -> None:
        """Begin a piece, here or at a place."""
        if self._left:
            if kind != "text":  # an element with others in it is not a word of a sentence
                self.marks[-1].kind = "break"
        elif kind != "text" or self.marks[-1].kind != "text":
            self.marks.append(_Mark(at=self._here() if at is None else at, kind=kind, tag=tag))

    def _is_escaped(self) -> bool:
        """Whether a script has another within a comment, whose end tag is to a browser not that of the script."""
        comment = self._given.find("<!--", self.marks[-1].at, self._here())
        return comment >= 0 and SCRIPT.search(self._given, comment, self._here()) is not None

    def _here(self) -> int:
        line, column = self.getpos()
        return self._line_starts[line - 1] + column


def _is_shut(attributes: Attributes) -> bool:
    """Whether they say that the element is not to be translated."""
    return any(name == "translate" and (value or "").lower() == "no" for name, value in attributes)


def _pieces(html: str) -> Iterator[_Piece]:
    """All of the HTML, cut where its pieces begin."""
    marks = _Reader(html).marks
    for mark, behind in pairwise([*marks, _Mark(at=len(html), kind="break")]):
        raw = html[mark.at : behind.at]
        if mark.kind == "text":
            found = BROKEN.search(raw)
            end = found.start() if found else len(raw)
            yield _Piece(kind="text", raw=raw[:end], text=_plain(raw[:end]))
            yield _Piece(kind="break", raw=raw[end:])
        elif mark.kind == "left":
            inner = raw[mark.opening : raw.rindex("<")]
            yield _Piece(kind="break" if "<" in inner else "left", raw=raw, text=_plain(inner))
        else:
            yield _Piece(kind=mark.kind, raw=raw, tag=mark.tag)


def _plain(raw: str) -> str:
    return WHITE.sub(" ", unescape(HUGE.sub("\ufffd", raw)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passage:
    """Text with the inline markup in it: what stands between two pieces that part sentences."""

    pieces: Sequence[_Piece]
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


def _build_passage(pieces: Sequence[_Piece]) -> _Passage:
    runs = [piece.text.strip() for piece in pieces if _is_run(piece)]
    text, elements = _read_elements(pieces)
    if not runs or len(elements) > MOST_ELEMENTS or sum(bool(piece.text.strip()) for piece in pieces) < 2:
        elements = []
    return _Passage(pieces=pieces, text=text, elements=elements, lines=[text, *runs] if elements else runs)


def _read_elements(pieces: Iterable[_Piece]) -> tuple[str, list[_Element]]:
    """The text of all pieces, and the elements in it; none where they do not nest."""
    text, elements = "", list[_Element]()
    opened: list[tuple[_Piece, int]] = []
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


def _is_run(piece: _Piece) -> bool:
    return piece.kind == "text" and any(map(str.isalpha, piece.text))


def _rewritten(piece: _Piece, found: Translation) -> str:
    if found.text in {"", piece.text.strip()}:  # what the model has no words for is kept
        return piece.raw
    before, behind = _edges(piece)
    return before + _escaped(found.text) + behind


def _edges(piece: _Piece) -> tuple[str, str]:
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


class Page:
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


def build_page(html: str) -> Page:
    """Take HTML apart, however it is formed."""
    pieces = (piece for piece in _pieces(html) if piece.raw)
    return Page(
        [
            "".join(piece.raw for piece in some) if is_break else _build_passage(list(some))
            for is_break, some in groupby(pieces, key=lambda piece: piece.kind == "break")
        ]
    )
