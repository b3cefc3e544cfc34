"""Reads many numbers out of one text at once, eight digits at a time: what makes long logs short to read."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tandem.observe.series.columns import Counts, Flags, Numbers

__all__ = ["Text"]

_Words: TypeAlias = NDArray[np.uint64]

_WORD = 8
_MOST_WORDS = 3
_POINT, _EXPONENT, _MINUS, _ZERO = b".e-0"
_EXPONENT_BYTES = 4


def _repeated(byte: int) -> np.uint64:
    return np.uint64(int.from_bytes(bytes([byte] * _WORD), "little"))


_ZEROS, _CARRY, _TOP = _repeated(0x30), _repeated(0x46), _repeated(0x80)
_KEEP: _Words = np.array(
    [((1 << 64) - 1) ^ ((1 << 8 * (_WORD - held)) - 1) for held in range(_WORD + 1)], np.uint64
)
"""Masks of the last bytes of a word, by how many of them are kept."""
_POWERS: Numbers = np.array([float(10**power) for power in range(32)])


class Text:
    """A text with places in it."""

    def __init__(self, text: bytes) -> None:
        self.bytes = np.frombuffer(text, np.uint8)
        # A word begins at every byte, so that eight digits are one number wherever they stand.
        self.words: _Words = np.ndarray((max(0, len(text) - _WORD + 1),), "<u8", text, strides=(1,))

    def find(self, byte: bytes) -> Counts:
        """The places of a byte."""
        return np.flatnonzero(self.bytes == byte[0])

    def whole(self, start: Counts, stop: Counts) -> tuple[Counts, Flags]:
        """Whole numbers between two places, and which of them are none."""
        length = stop - start
        longest = int(length.max(initial=0))
        total = np.zeros(len(start), np.uint64)
        bad = (length <= 0) | (length > _WORD * _MOST_WORDS)
        for place in range(0, min(longest, _WORD * _MOST_WORDS), _WORD):
            keep = _KEEP[np.minimum(np.maximum(length - place, 0), _WORD)]
            word = self.words[np.maximum(stop - place - _WORD, 0)] & keep | _ZEROS & ~keep
            bad |= ((word + _CARRY | word - _ZEROS) & _TOP) != 0
            value = _eight_digits(word)
            if place == _WORD * (_MOST_WORDS - 1):
                bad |= value > 900  # more would not fit into 63 bits
            total += value * np.uint64(10**place)
        return total.astype(np.int64), bad

    def decimal(self, start: Counts, stop: Counts) -> tuple[Numbers, Flags]:
        """Numbers as JSON writes them between two places, and which of them are none."""
        minus = self.bytes[start] == _MINUS
        start = start + minus
        power, stop, bad = self._exponent(start, stop)
        point = self._point(start, stop)
        before, bad_before = self._before(start, point)
        after, bad_after = self.whole(np.minimum(point + 1, stop), stop)
        digits = stop - point - 1
        bad |= bad_before | (bad_after & (digits >= 0))
        value = before + after / _POWERS[np.minimum(np.maximum(digits, 0), len(_POWERS) - 1)]
        if power.any():
            scale = _POWERS[np.minimum(np.abs(power), len(_POWERS) - 1)]
            bad |= np.abs(power) >= len(_POWERS)
            value = np.where(power < 0, value / scale, value * scale)
        return np.where(minus, -value, value), bad

    def _before(self, start: Counts, point: Counts) -> tuple[Counts, Flags]:
        """What stands before the decimal point: nearly always one digit."""
        if (point - start != 1).any():
            return self.whole(start, point)
        digit = self.bytes[start] - np.uint8(_ZERO)
        return digit.astype(np.int64), digit > 9

    def _exponent(self, start: Counts, stop: Counts) -> tuple[Counts, Counts, Flags]:
        """The power of ten behind each number, and where what stands before it ends."""
        bad = np.zeros(len(start), np.bool_)
        has = (stop - start > _EXPONENT_BYTES) & (self.bytes[stop - _EXPONENT_BYTES] == _EXPONENT)
        if not has.any():
            return np.zeros(len(start), np.int64), stop, bad
        power, wrong = self.whole(np.where(has, stop - 2, start), np.where(has, stop, start))
        sign = np.where(self.bytes[stop - 3] == _MINUS, -1, 1)
        return np.where(has, sign * power, 0), np.where(has, stop - _EXPONENT_BYTES, stop), has & wrong

    def _point(self, start: Counts, stop: Counts) -> Counts:
        """The place of each decimal point; the end of a number that has none."""
        point = np.minimum(start + 1, stop)
        for _ in range(_WORD * _MOST_WORDS):
            before = (point < stop) & (self.bytes[point] != _POINT)
            if not before.any():
                break
            point += before
        return point


def _eight_digits(word: _Words) -> _Words:
    """The number that eight digits make: pairs, then fours, then all, each in one multiplication."""
    word = word - _ZEROS
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (word * np.uint64(10_000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
