"""Sentences to try an exported model on: the run's own valid set where it is at hand."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from tandem.config import Recipe
from tandem.data.corpus.builtin import builtin_pairs
from tandem.data.corpus.held_out import open_held_out
from tandem.data.prepared import Prepared
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.translate.engine import Sentence
from tandem.translate.open import build_mend
from tandem.translate.translator import most_target_pieces

__all__ = ["SENTENCES", "sample_sentences"]

SENTENCES = 64
LONGEST = 128
"""Pieces of the longest sentence that is tried."""


def sample_sentences(recipe: Recipe, subword: Subword) -> list[Sentence]:
    """Sentences of the language that the model reads; of pieces drawn at random where no text of it is at hand."""
    lines = _held_out(recipe)
    if not lines and recipe.data.source_language == "en":
        lines = [source for source, _ in builtin_pairs(seed=1, split="valid", count=SENTENCES)]
    mend = build_mend(recipe)
    rows = _rows(subword, [mend(line) for line in lines]) or _random_rows(subword)
    return [Sentence(source=row, most=most_target_pieces(len(row))) for row in rows]


def _held_out(recipe: Recipe) -> list[str]:
    prepared = Prepared(folder=recipe.prepared_folder, recipe=recipe)
    with suppress(OSError, TandemError, ValueError):
        lines = open_held_out(prepared.held_out_text_folder("valid")).source
        stride = max(1, len(lines) // SENTENCES)
        return list(lines[::stride][:SENTENCES])
    return []


def _rows(subword: Subword, lines: Sequence[str]) -> list[tuple[int, ...]]:
    if not lines:
        return []
    encoded = subword.source.encode(lines)
    rows = np.split(encoded.ids.astype(np.int64), np.cumsum(encoded.lengths)[:-1])
    return [tuple(row[:LONGEST].tolist()) for row in rows if len(row)]


def _random_rows(subword: Subword) -> list[tuple[int, ...]]:
    drawn, special = np.random.default_rng(1), subword.source.special
    marks = [special.unk, special.bos, special.eos, special.pad]
    pieces = np.setdiff1d(np.arange(subword.source.pieces), marks)
    return [tuple(drawn.choice(pieces, 4 + number % 21).tolist()) for number in range(SENTENCES)]
