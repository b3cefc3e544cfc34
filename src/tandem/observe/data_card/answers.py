"""How big is the training set? The card's answers in words, for the terminal and the page alike."""

from dataclasses import dataclass

from tandem.observe.histogram import axis_end, share_over
from tandem.observe.numbers import count, megabytes, percent, short_count
from tandem.runlog.card import DataCard

__all__ = ["EMPTY", "QUESTION", "Size", "headline", "lengths_note", "mended", "sizes"]

EMPTY = "(empty)"
"""Shown in the place of a sentence that has no characters."""
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
"""Files whose size on disk says little about their text."""
QUESTION = "How big is the training set?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One of the four numbers that are taken for one another, and what it counts."""

    name: str
    value: str
    meaning: str


def headline(card: DataCard) -> str:
    """The answer in one sentence, with the four numbers."""
    clean_bytes = card.cleaned.source_bytes + card.cleaned.target_bytes
    tokens = card.tokens.source + card.tokens.target
    return (
        f"{count(card.cleaned.lines)} sentence pairs: {megabytes(card.raw.bytes)} of raw files, "
        f"{megabytes(clean_bytes)} of clean text, {short_count(tokens)} tokens, "
        f"{megabytes(card.stored.bytes)} of shards on disk."
    )


def sizes(card: DataCard) -> tuple[Size, ...]:
    """The four numbers, in the order in which the data is made."""
    source, target = card.languages.source, card.languages.target
    clean, tokens = card.cleaned, card.tokens
    return (
        Size(
            name="raw files",
            value=megabytes(card.raw.bytes),
            meaning=f"{_files(card)}; {count(card.raw.lines)} pairs uncleaned",
        ),
        Size(
            name="clean text",
            value=megabytes(clean.source_bytes + clean.target_bytes),
            meaning=f"UTF-8: {megabytes(clean.source_bytes)} {source} + "
            f"{megabytes(clean.target_bytes)} {target}",
        ),
        Size(
            name="tokens",
            value=count(tokens.source + tokens.target),
            meaning=f"with end marks: {short_count(tokens.source)} {source} + "
            f"{short_count(tokens.target)} {target}",
        ),
        Size(
            name="shards",
            value=megabytes(card.stored.bytes),
            meaning=f"{_plural(card.stored.pairs, 'pair')} as ids on disk: what training reads",
        ),
    )


def mended(card: DataCard) -> str:
    """How many sentences were mended and kept, by kind."""
    if not card.changed:
        return "Mended: nothing."
    each = ", ".join(f"{change.name} in {count(change.count)}" for change in card.changed)
    return f"Mended sentences: {each}."


def lengths_note(card: DataCard) -> str:
    """What the plot of lengths leaves out at its right end; empty where it shows everything."""
    end = axis_end(card.lengths.source, card.lengths.target)
    over = share_over(card.lengths.source, end), share_over(card.lengths.target, end)
    if not any(over):
        return ""
    longest = max(*card.lengths.source.edges, *card.lengths.target.edges)
    return (
        f"Longer and not shown: {percent(over[0])} of {card.languages.source}, "
        f"{percent(over[1])} of {card.languages.target}; none has over {count(longest)} pieces."
    )


def _files(card: DataCard) -> str:
    names = [file.name for corpus in card.corpora for file in corpus.files]
    compressed = sum(name.endswith(COMPRESSED) for name in names)
    if not names:
        return "made by the built-in grammar"
    return _plural(len(names), "file") + (f", {count(compressed)} compressed" if compressed else "")


def _plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}" + ("" if number == 1 else "s")
