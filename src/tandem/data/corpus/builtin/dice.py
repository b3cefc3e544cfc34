"""Random choices made from `random()` alone, which is the same in every version of Python."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

__all__ = ["Dice"]

T = TypeVar("T")


class Dice:
    """A source of choices."""

    __slots__ = ("_random",)

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def below(self, limit: int) -> int:
        """Draw a whole number from 0 up to, not including, `limit`."""
        return int(self._random() * limit)

    def chance(self, probability: float) -> bool:
        """Come true with this probability."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of `options`."""
        return options[int(self._random() * len(options))]
