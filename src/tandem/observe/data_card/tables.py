"""The card's tables as text, for the terminal and the page alike."""

from tandem.observe.numbers import count, decimal, megabytes, percent, share
from tandem.observe.tabular import Table
from tandem.runlog.card import Corpus, DataCard, HeldOut

__all__ = [
    "Table",
    "batching_table",
    "corpora_table",
    "dropped_table",
    "files_table",
    "held_out_table",
    "sides_table",
]


def corpora_table(card: DataCard) -> Table:
    """What was read, what cleaning kept of it, and how often it is drawn."""
    kept = sum(corpus.kept for corpus in card.corpora)
    rows = [_corpus_row(corpus) for corpus in card.corpora]
    if len(rows) > 1:
        total = count(card.raw.lines), count(kept), percent(share(kept, card.raw.lines))
        rows.append(("all", megabytes(card.raw.bytes), *total, ""))
    later = kept - card.cleaned.lines
    return Table(
        title="Corpora",
        columns=("corpus", "raw files", "pairs read", "kept", "share kept", "weight"),
        rows=tuple(rows),
        note=f"Encoding then dropped {count(later)} more; {count(card.cleaned.lines)} are left."
        if later
        else "",
    )


def _corpus_row(corpus: Corpus) -> tuple[str, ...]:
    return (
        corpus.name,
        megabytes(sum(file.bytes for file in corpus.files)),
        count(corpus.lines),
        count(corpus.kept),
        percent(share(corpus.kept, corpus.lines)),
        f"{corpus.weight:g}",
    )


def files_table(card: DataCard) -> Table:
    """Each raw file with its size and checksum."""
    return Table(
        title="Raw files",
        columns=("corpus", "file", "SHA-256", "size"),
        rows=tuple(
            (corpus.name, file.name, file.sha256, megabytes(file.bytes))
            for corpus in card.corpora
            for file in corpus.files
        ),
        names=3,
    )


def dropped_table(card: DataCard) -> Table:
    """How many pairs each reason took out; a pair is counted under the first that fits."""
    total = sum(each.count for each in card.dropped)
    read = card.raw.lines
    return Table(
        title=f"Dropped: {count(total)} of {count(read)} pairs ({percent(share(total, read))})",
        columns=("reason", "pairs", "share"),
        rows=tuple(
            (each.reason, count(each.count), percent(share(each.count, read))) for each in card.dropped
        ),
    )


def sides_table(card: DataCard) -> Table:
    """Text, words and tokens of each side."""
    clean, words, tokens, rates = card.cleaned, card.words, card.tokens, card.fertility
    sides = (
        (f"{card.languages.source} (source)", clean.source_bytes, words.source, tokens.source, rates.source),
        (f"{card.languages.target} (target)", clean.target_bytes, words.target, tokens.target, rates.target),
    )
    vocabulary = card.vocabulary
    return Table(
        title="Words and tokens",
        columns=("side", "clean text", "words", "tokens", "pieces a word", "tokens a sentence"),
        rows=tuple(
            (
                name,
                megabytes(text),
                count(spoken),
                count(encoded),
                decimal(rate),
                decimal(share(encoded, clean.lines)),
            )
            for name, text, spoken, encoded, rate in sides
        ),
        note=f"Vocabulary of {count(vocabulary.size)} ({vocabulary.kind}); "
        f"{count(vocabulary.unknown_pieces)} unknown pieces in the text.",
    )


def held_out_table(card: DataCard) -> Table:
    """The sets kept for evaluation."""
    source, target = card.languages.source, card.languages.target
    return Table(
        title="Held out",
        columns=("set", "pairs", f"tokens {source}", f"tokens {target}", "overlap removed"),
        rows=tuple(map(_held_out_row, card.held_out)),
        note="Overlap: training pairs that were dropped because one of their sides is also in the set."
        if card.held_out
        else "No set is held out.",
    )


def _held_out_row(held: HeldOut) -> tuple[str, ...]:
    sides = held.tokens.source, held.tokens.target
    return (
        held.name,
        count(held.pairs),
        *map(count, sides),
        count(held.overlap_removed) if held.overlap_checked else "not checked",
    )


def batching_table(card: DataCard) -> Table:
    """What one update holds, and what padding would waste of it."""
    batching = card.batching
    return Table(
        title="One update",
        columns=("target tokens", "pairs", "updates an epoch", "padding, padded", "padding, packed"),
        rows=(
            (
                count(batching.target_tokens),
                decimal(batching.pairs_per_update),
                count(batching.updates_per_epoch),
                percent(batching.padded_share),
                percent(batching.packed_share),
            ),
        ),
        names=0,
        note="Padding: share of the positions of both sides that hold no token, in either layout of batches.",
    )
