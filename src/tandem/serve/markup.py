"""HTML cut into pieces: text that can be translated, tags within sentences, and all the rest."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from typing import Literal, TypeAlias

__all__ = ["LEFT_ALONE", "Kind", "Piece", "cut_markup"]

Kind: TypeAlias = Literal["text", "open", "close", "left", "break"]
"""Text, an inline element's tags, an inline element that is left alone, and all that parts sentences."""
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

BROKEN = re.compile(r"<[A-Za-z/!?]")
"""What begins like markup, also where the parser takes it for text."""
QUOTE = re.compile("[\"']")
ENDED = re.compile(r"\A-?>|--!>")
"""In a comment: to a browser it has ended."""
SCRIPT = re.compile("<script", re.IGNORECASE)
HUGE = re.compile(r"&#[0-9]{9,};?")
"""Of no character; Python would not even read the number."""
WHITE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of HTML."""

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


class _BrokenError(Exception):
    """From here on a browser reads otherwise, and may see a tag where the parser sees text."""


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
        except (AssertionError, _BrokenError):  # the parser's own is for a marked section of an unknown kind
            self._mark("break")
        else:
            self._mark("text", at=end)
        if self._left:
            self.marks[-1].kind = "break"

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        """Begin an element."""
        if any(QUOTE.search(name) for name, _ in attrs):  # one that is not closed
            raise _BrokenError
        if self._left:
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
            raise _BrokenError
        if self._left and not self._depth:
            self._left = ""
        else:
            self._mark("close" if tag in INLINE else "break", tag)

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self.cdata_elem is None and BROKEN.match(data):
            raise _BrokenError
        self._mark("text")

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        """Begin an element: to a browser the slash says something in drawings and formulas alone."""
        if tag in self.CDATA_CONTENT_ELEMENTS:
            raise _BrokenError
        if tag in FOREIGN:
            self._mark("break")
        else:
            self.handle_starttag(tag, attrs)

    def handle_comment(self, data: str) -> None:
        """Take a comment."""
        end = self._here() + len("<!--") + len(data)
        is_long = self._given.startswith("<!--", self._here())
        if is_long and (ENDED.search(data) or not self._given.startswith("-->", end)):
            raise _BrokenError
        self._mark("break")

    def unknown_decl(self, data: str) -> None:
        """Take a marked section; to a browser it ends at the first >."""
        if ">" in data:
            raise _BrokenError
        self._mark("break")

    def handle_decl(self, decl: str) -> None:  # noqa: ARG002  (the library's signature)
        """Take a declaration."""
        self._mark("break")

    def handle_pi(self, data: str) -> None:  # noqa: ARG002
        """Take an instruction."""
        self._mark("break")

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


def cut_markup(html: str) -> Iterator[Piece]:
    """All of the HTML, cut where its pieces begin."""
    marks = _Reader(html).marks
    for mark, behind in pairwise([*marks, _Mark(at=len(html), kind="break")]):
        raw = html[mark.at : behind.at]
        if mark.kind == "text":
            found = BROKEN.search(raw)
            end = found.start() if found else len(raw)
            yield Piece(kind="text", raw=raw[:end], text=_plain(raw[:end]))
            yield Piece(kind="break", raw=raw[end:])
        elif mark.kind == "left":
            inner = raw[mark.opening : raw.rindex("<")]
            yield Piece(kind="break" if "<" in inner else "left", raw=raw, text=_plain(inner))
        else:
            yield Piece(kind=mark.kind, raw=raw, tag=mark.tag)


def _plain(raw: str) -> str:
    return WHITE.sub(" ", unescape(HUGE.sub("\ufffd", raw)))
