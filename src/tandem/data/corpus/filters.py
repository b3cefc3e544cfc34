"""The filters of cleaning: each a function with its own counter, in one visible list.

A mender changes a sentence and lets it pass; a filter says that a pair must go.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tandem.config import CleanSection

__all__ = [
    "Candidate",
    "Filter",
    "HeldOutSentences",
    "Mender",
    "build_filters",
    "build_menders",
    "held_out_key",
    "overlap_reason",
]


class Candidate(NamedTuple):
    """A mended pair under judgement, single spaces between its words."""

    source: str
    target: str
    source_words: Sequence[str]
    target_words: Sequence[str]


Mender = Callable[[str], str]
Filter = Callable[[Candidate], bool]
"""True: the pair must go."""

TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--")
KEPT_FORMATS = "\u200c\u200d"
"""Zero-width joiners are letters' business in Persian and Indic scripts."""
DROPPED_CATEGORIES = ("Cc", "Cf", "Co", "Cs")
"""Not Cn: what one version of Unicode has not assigned, the next one may have."""


def compose_unicode(text: str) -> str:
    """Unicode NFC: one code point for a letter with its accent."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def strip_control(text: str) -> str:
    """Control, format and private-use characters go; those that Unicode counts as white space become a space."""
    if text.isprintable():
        return text
    return "".join(_controlled(character) for character in text)


def _controlled(character: str) -> str:
    if character.isprintable() or character in KEPT_FORMATS:
        return character
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) in DROPPED_CATEGORIES else character


def unescape_entities(text: str) -> str:
    """HTML entities left over from the web (`&amp;`) become their characters."""
    return html.unescape(text) if "&" in text else text


def build_menders(rules: CleanSection, *, segmented: bool) -> list[tuple[str, Mender]]:
    """The menders of these rules, in order. Already-segmented text keeps its tokens as they are."""
    chosen = [
        ("markup entities unescaped", unescape_entities, rules.markup and not segmented),
        ("Unicode composed (NFC)", compose_unicode, rules.unicode_nfc),
        ("control characters removed", strip_control, rules.strip_control),
    ]
    return [(name, mender) for name, mender, wanted in chosen if wanted]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutSentences:
    """The sentences of a valid or test set, which train must not hold."""

    source: frozenset[str]
    target: frozenset[str]


def held_out_key(text: str) -> str:
    """What makes two sentences the same for the overlap filter: their words, whatever the case."""
    return " ".join(text.casefold().split())


def overlap_reason(name: str) -> str:
    """The reason under which pairs are counted that are also in the held-out set of that name."""
    return f"also in {name}"


def _overlap_filter(held_out: HeldOutSentences) -> Filter:
    def overlaps(pair: Candidate) -> bool:
        # The sides of a candidate have single spaces already: their key is a casefold away.
        return pair.source.casefold() in held_out.source or pair.target.casefold() in held_out.target

    return overlaps


def build_filters(
    rules: CleanSection,
    held_out: Mapping[str, HeldOutSentences],
    *,
    languages: tuple[str, str],
    segmented: bool,
) -> list[tuple[str, Filter]]:
    """The filters of these rules, in the order in which they judge. The first that says no is counted."""

    def is_empty(pair: Candidate) -> bool:
        return not pair.source_words or not pair.target_words

    def has_markup(pair: Candidate) -> bool:
        return any("<" in side and TAG.search(side) is not None for side in (pair.source, pair.target))

    def is_out_of_length(pair: Candidate) -> bool:
        low, high = rules.min_words, rules.max_words
        return not (low <= len(pair.source_words) <= high and low <= len(pair.target_words) <= high)

    def is_out_of_ratio(pair: Candidate) -> bool:
        short, long = sorted((len(pair.source_words), len(pair.target_words)))
        return long > short * rules.max_ratio

    def has_long_word(pair: Candidate) -> bool:
        limit = rules.max_word_characters
        return len(max(pair.source_words, key=len)) > limit or len(max(pair.target_words, key=len)) > limit

    def is_identical(pair: Candidate) -> bool:
        return pair.source == pair.target

    chosen: list[tuple[str, Filter, bool]] = [
        ("empty side", is_empty, True),
        ("left-over markup", has_markup, rules.markup and not segmented),
        (f"not {rules.min_words}–{rules.max_words} words", is_out_of_length, True),
        (f"word ratio over {rules.max_ratio:g}", is_out_of_ratio, True),
        (f"word over {rules.max_word_characters:g} characters", has_long_word, True),
        ("identical sides", is_identical, rules.drop_identical),
    ]
    filters = [(name, judge) for name, judge, wanted in chosen if wanted]
    if rules.drop_held_out_overlap:
        filters += [
            (overlap_reason(name), _overlap_filter(sentences)) for name, sentences in held_out.items()
        ]
    if rules.language_id:
        from tandem.data.corpus.language import build_language_filter  # noqa: PLC0415  (the extra may be absent)

        filters.append(("wrong language", build_language_filter(languages)))
    return filters
