"""Long lines in parts that a model can take: sentences, else clauses, else words, else a cut anywhere."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

__all__ = ["Count", "is_wide", "join_texts", "split_line", "split_sentences"]

Count: TypeAlias = Callable[[Sequence[str]], Sequence[int]]
"""How many pieces each text has."""

Span: TypeAlias = tuple[int, int]

ENDS = ".!?…‼⁇⁈⁉。！？｡．।॥؟۔։፧።܀܂᙮᠃᠉᥄᥅။၏។៕"
WIDE_ENDS = "。！？｡．"
"""After these no space is needed: their scripts part words by none."""
CLOSING = "\"'”’»«›‹“‘)]}〉》」』】〕）］｝＂＇"
CLAUSE_ENDS = ",;:،؛、，；：·—–"
WIDE_CLAUSE_ENDS = "、，；：—"

MOST_CHARACTERS_A_PIECE = 32
"""SentencePiece's pieces have 16 at most; segmented text may have longer ones."""

_SHORT_FORMS = """
mr mrs ms dr prof rev hon st sr jr gen col lt sgt capt cmdr gov sen rep pres supt messrs mmes
vs etc e.g i.e cf al nos vol vols ch sec fig figs eq eqs ed eds pp approx dept inc ltd co corp bros
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri a.m p.m u.s u.k u.n
bzw ca d.h z.b u.a u.ä o.ä s.o s.u z.t z.zt i.d.r m.e u.u v.a v.chr n.chr bzgl evtl ggf inkl exkl zzgl abzgl
hr hrn frl dipl ing str nr abb abs aufl bd bde hg hrsg jh jhd kap lfd mio mrd mind
s.a sog tel usw usf vgl allg bes ehem geb gest gegr mär okt dez
"""
ABBREVIATIONS = frozenset(_SHORT_FORMS.split())
"""English and German, in lower case, without the last full stop."""

_CLOSING_FORMS = """
etc al inc ltd co corp bros jr sr a.m p.m u.s u.k u.n usw u.a u.ä o.ä s.o s.u v.chr n.chr mio mrd
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri mär okt dez
"""
CLOSING_ABBREVIATIONS = frozenset(_CLOSING_FORMS.split())
"""Those that a sentence may end with: others need a word behind them."""

_FIRST_WORDS = """
a an and as at after before but during for from he her here his how however i if in it its many most my no not on or
our she so some that the their then there these they this those we what when where which while who why with yes you
your aber als am an auch auf bei beim da damals dann das dem den der dies diese dieser dieses doch dort durch ein eine
einer eines er es für gegen hier ich ihr ihre im in jede jeder jetzt kein keine man mein meine mit nach nein nun nur ob
oder ohne seine sein seit sie trotzdem über um und unser unter viele vom von vor während warum was weil wenn wer wie
wir wo zu zum zur zwischen
"""
FIRST_WORDS = frozenset(_FIRST_WORDS.split())
"""English and German; with a capital inside a sentence they are rare."""

# Begun at the first of a run of marks alone, and never taken back: a million marks are looked at once.
_SENTENCE = re.compile(
    rf"(?<![{re.escape(ENDS)}])[{re.escape(ENDS)}]++[{re.escape(CLOSING)}]*+(?=\s)"
    rf"|[{WIDE_ENDS}]++[{re.escape(CLOSING)}]*+"
)
_CLAUSE = re.compile(
    rf"(?<![{re.escape(CLAUSE_ENDS)}])[{re.escape(CLAUSE_ENDS)}]++[{re.escape(CLOSING)}]*+(?=\s)"
    rf"|[{WIDE_CLAUSE_ENDS}]++"
)
_WORD = re.compile(r"\S+")
_FIRST_WORD = re.compile(r"[\"'„“‚‘«»(\[]*(\w+)\s")
_LAST_WORD = re.compile(r"[^\s(\[{\"'„“‚‘«»]*$")


def split_sentences(line: str) -> list[str]:
    """The sentences of a line, without white space around them."""
    return [line[start:end] for start, end in _sentences(line, (0, len(line)))]


def split_line(line: str, count: Count, *, most: int) -> list[str]:
    """The sentences of a line; those of more pieces than `most` in as few parts as may be.

    Nothing but white space between parts is lost.
    """
    spans = _sentences(line, (0, len(line)))
    for cut in (_clauses, _words, _windows(most)):
        spans = _cut_long(line, spans, cut, count=count, most=most)
    return [line[start:end] for start, end in spans]


def join_texts(texts: Iterable[str]) -> str:
    """Translations of parts as one line: a space between them, none where the script has none."""
    joined: list[str] = []
    for text in filter(None, texts):
        if joined and not (is_wide(joined[-1][-1]) or is_wide(text[0])):
            joined.append(" ")
        joined.append(text)
    return "".join(joined)


def is_wide(character: str) -> bool:
    """Whether it is of Chinese or Japanese, which put no space between words."""
    return unicodedata.east_asian_width(character) in "WF" and not "가" <= character <= "힣"


def _cut_long(
    line: str, spans: list[Span], cut: Callable[[str, Span], list[Span]], *, count: Count, most: int
) -> list[Span]:
    """Cut those that are too long, and put neighbours together again as far as they are not."""
    result: list[Span] = []
    for span, pieces in zip(spans, _counted(line, spans, count, most), strict=True):
        result += [span] if pieces <= most else _packed(line, cut(line, span), count=count, most=most)
    return result


def _packed(line: str, spans: list[Span], *, count: Count, most: int) -> list[Span]:
    """Neighbours together: a word alone says less than with those around it."""
    packed: list[Span] = []
    filled = 0
    for span, pieces in zip(spans, _counted(line, spans, count, most), strict=True):
        if packed and filled + pieces <= most:
            packed[-1] = (packed[-1][0], span[1])
            filled += pieces
        else:
            packed.append(span)
            filled = pieces
    return packed


def _counted(line: str, spans: list[Span], count: Count, most: int) -> list[int]:
    """Pieces of each span; of one that is surely too long not even that is asked."""
    is_sure = [end - start > most * MOST_CHARACTERS_A_PIECE for start, end in spans]
    asked = iter(count([line[slice(*span)] for span, sure in zip(spans, is_sure, strict=True) if not sure]))
    return [most + 1 if sure else int(next(asked)) for sure in is_sure]


def _between(line: str, span: Span, places: Iterable[int]) -> list[Span]:
    """The parts between these places, without white space around them, and without empty ones."""
    spans = []
    for start, end in pairwise([span[0], *places, span[1]]):
        part = line[start:end]
        stripped = part.strip()
        if stripped:
            first = start + len(part) - len(part.lstrip())
            spans.append((first, first + len(stripped)))
    return spans


def _sentences(line: str, span: Span) -> list[Span]:
    ends = (found.end() for found in _SENTENCE.finditer(line, *span))
    return _between(line, span, (end for end in ends if _ends_sentence(line, end)))


def _clauses(line: str, span: Span) -> list[Span]:
    return _between(line, span, (found.end() for found in _CLAUSE.finditer(line, *span)))


def _words(line: str, span: Span) -> list[Span]:
    return [found.span() for found in _WORD.finditer(line, *span)]


def _windows(most: int) -> Callable[[str, Span], list[Span]]:
    # In UTF-8 a character has four bytes at most, and where each is a piece a window must still fit.
    width = max(1, most // 4)

    def cut(line: str, span: Span) -> list[Span]:
        return _between(line, span, _apart(line, range(span[0] + width, span[1], width)))

    return cut


def _apart(line: str, places: Iterable[int]) -> Iterator[int]:
    """The places, moved so that no letter is parted from its accents."""
    for place in places:
        yield next((at for at in range(place, place - 8, -1) if not unicodedata.combining(line[at])), place)


def _ends_sentence(line: str, end: int) -> bool:
    """Whether a sentence ends here, and not an abbreviation, an initial or an ordinal number."""
    # Looking at a few characters only: a line may have a million of them.
    before, after = line[max(0, end - 20) : end], line[end : end + 40].lstrip()
    if not before.endswith(".") or before.endswith(".."):
        return True
    found = _LAST_WORD.search(before)
    word = found[0].rstrip(".").lower() if found else ""
    # "am 3. Mai": of one or two digits it is rather an ordinal than the end.
    is_short = (word.isdigit() and len(word) <= 2) or (word.isalpha() and len(word) == 1)
    if after[:1].islower():
        return False
    if not is_short and word not in ABBREVIATIONS:
        return True
    # "at 5 p.m. The dog": a first word of sentences settles it, but "2. The dog" is an item of a list.
    is_last = word in CLOSING_ABBREVIATIONS or (
        is_short and _is_within(before[: found.start() if found else 0])
    )
    follower = _FIRST_WORD.match(after)
    return is_last and follower is not None and follower[1].lower() in FIRST_WORDS


def _is_within(text: str) -> bool:
    """Whether a sentence has begun before the end of this text."""
    ending = text.rstrip()[-1:]
    return bool(ending) and ending not in ENDS + CLOSING
