"""Streams distinct sentence pairs of one split from a seed."""

import random
from array import array
from collections.abc import Iterator

from tandem.data.corpus.builtin.dice import Dice
from tandem.data.corpus.builtin.identity import Split, split_of, stable_hash
from tandem.data.corpus.builtin.patterns import draw_sentence
from tandem.errors import TandemError

__all__ = ["GRAMMAR_VERSION", "builtin_pairs"]

GRAMMAR_VERSION = 1
"""Goes up whenever the same seed gives other sentences, so that prepared data is known to be stale."""

_PATIENCE = 200_000  # fruitless draws in a row after which the grammar counts as exhausted
_EMPTY = 0
_FEWEST_SPACES = 2


class _Seen:
    """A set of 64-bit hashes in a flat array: 16 to 32 bytes a member."""

    __slots__ = ("_mask", "_size", "_table")

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 << 12))
        self._mask = (1 << 12) - 1
        self._size = 0

    def _find(self, key: int) -> int:
        table, mask = self._table, self._mask
        at = key & mask
        while table[at] not in (_EMPTY, key):
            at = (at + 1) & mask
        return at

    def __contains__(self, key: int) -> bool:
        return self._table[self._find(key)] == key

    def add(self, key: int) -> None:
        self._table[self._find(key)] = key
        self._size += 1
        if 2 * self._size > self._mask:
            self._grow()

    def _grow(self) -> None:
        members = self._table
        self._mask = 2 * len(members) - 1
        self._table = array("Q", bytes(8 * (self._mask + 1)))
        for key in members:
            if key != _EMPTY:
                self._table[self._find(key)] = key


def builtin_pairs(*, seed: int, split: Split, count: int) -> Iterator[tuple[str, str]]:
    """Yield `count` pairs (English, German), no sentence twice on either side nor in two splits, whatever the seeds.

    The stream is the same for the same seed on any machine, and a larger count only continues a smaller one. It
    remembers a hash of each sentence it has given (32 to 64 bytes a pair). Raises TandemError when it finds no more.
    """
    dice = Dice(random.Random(stable_hash(f"{split} {seed}")))  # noqa: S311
    english_seen, german_seen = _Seen(), _Seen()
    for given in range(count):
        for _ in range(_PATIENCE):
            sentence = draw_sentence(dice)
            if split_of(sentence) != split:
                continue
            english, german = sentence.english(), sentence.german()
            if english.count(" ") < _FEWEST_SPACES:
                continue
            english_key, german_key = stable_hash(english) or 1, stable_hash(german) or 1
            if english_key not in english_seen and german_key not in german_seen:
                break
        else:
            raise TandemError(
                f"The built-in corpus found no new {split} pair after {given:,} of {count:,}; ask for fewer pairs."
            )
        english_seen.add(english_key)
        german_seen.add(german_key)
        yield english, german
