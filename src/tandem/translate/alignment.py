"""Which words of a translation come from which words of the source, as places in both texts."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tandem.translate.split import is_wide

__all__ = ["Link", "build_links", "locate_words", "piece_spans"]

Span: TypeAlias = tuple[int, int]
"""First character and the one behind the last."""

SEARCHED_CHARACTERS = 200
"""How far ahead a word is looked for in the text as it was given."""


class Link(NamedTuple):
    """A word of the source and a word of the translation that belong together."""

    source: Span
    """In the line as it was given."""
    target: Span
    """In the text of the translation."""


def build_links(pairs: Sequence[tuple[Span, Span]], *, source: str, target: str) -> tuple[Link, ...]:
    """Links between words from pairs of pieces (source, target), without repetitions, in the translation's order."""
    links = {
        Link(_widened(source, left), _widened(target, right))
        for left, right in pairs
        if left[0] < left[1] and right[0] < right[1]
    }
    return tuple(sorted(links, key=lambda link: (link.target, link.source)))


def piece_spans(decode: Callable[[Sequence[int]], str], ids: Sequence[int], text: str) -> list[Span]:
    """Where in a decoded text each piece stands; a piece of which nothing can be seen has no length."""
    ends = [_alike(decode(ids[: place + 1]), text) for place in range(len(ids))]
    spans, start = [], 0
    for end in ends:
        # Of bytes of one letter the first ones show nothing yet.
        stop = max(start, end)
        spans.append(_stripped(text, (start, stop)))
        start = stop
    return spans


def locate_words(text: str, given: str, *, start: int = 0) -> tuple[Callable[[Span], Span], int]:
    """A map from places in a mended text to places in the line as it was given, and where in that the text ends.

    Words are found one after another. What mending changed takes the place between its neighbours.
    """
    found = dict(_found(text, given, start))
    known = sorted(found)
    end = _end_of(known[-1], found, text) if known else min(len(given), start + len(text))

    def locate(span: Span) -> Span:
        word = _word_start(text, span[0])
        if word in found:
            shift = found[word] - word
            return span[0] + shift, span[1] + shift
        behind = bisect_left(known, word)
        left = _end_of(known[behind - 1], found, text) if behind else start
        right = found[known[behind]] if behind < len(known) else max(end, left)
        return _stripped(given, (left, right))

    return locate, end


def _end_of(word: int, found: Mapping[int, int], text: str) -> int:
    return found[word] + _word_end(text, word) - word


def _found(text: str, given: str, start: int) -> Iterator[Span]:
    """Where words begin, here and there."""
    place = 0
    for word in text.split():
        place = text.index(word, place)
        at = _find_word(word, given, start)
        if at >= 0:
            yield place, at
            start = at + len(word)
        place += len(word)


def _find_word(word: str, given: str, start: int) -> int:
    """Where a word begins that is not the end of another; -1 where it is not near."""
    end = start + len(word) + SEARCHED_CHARACTERS
    at = given.find(word, start, end)
    while at > start and _goes_on(given[at - 1]) and _goes_on(given[at]):
        at = given.find(word, at + 1, end)
    return at


def _word_start(text: str, place: int) -> int:
    while place > 0 and not text[place - 1].isspace():
        place -= 1
    return place


def _word_end(text: str, place: int) -> int:
    while place < len(text) and not text[place].isspace():
        place += 1
    return place


def _alike(beginning: str, text: str) -> int:
    """How far two texts are the same."""
    pairs = zip(beginning, text, strict=False)
    return next(
        (place for place, (one, other) in enumerate(pairs) if one != other), min(len(beginning), len(text))
    )


def _stripped(text: str, span: Span) -> Span:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _widened(text: str, span: Span) -> Span:
    """The whole word that a part of it stands in; of scripts without spaces the part itself."""
    start, end = span
    if text[start:end].isalnum():
        while start > 0 and _goes_on(text[start - 1]) and _goes_on(text[start]):
            start -= 1
        while end < len(text) and _goes_on(text[end]) and _goes_on(text[end - 1]):
            end += 1
    return start, end


def _goes_on(character: str) -> bool:
    return character.isalnum() and not is_wide(character)
