"""Sentences dealt to ranks by length, and the results put back in order."""

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["put_back", "share_of"]

Result = TypeVar("Result")


def share_of(lengths: Sequence[int], rank: int, ranks: int) -> list[int]:
    """Numbers of the sentences that a rank takes, longest first; the same deal on every rank that asks."""
    by_length = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    # Every other round goes backwards, so that no rank is always the one with the longer sentence.
    rounds = (by_length[start : start + ranks] for start in range(0, len(by_length), ranks))
    places = (rank, ranks - 1 - rank)
    return [one[place] for turn, one in enumerate(rounds) if (place := places[turn % 2]) < len(one)]


def put_back(gathered: Sequence[Sequence[Result]], lengths: Sequence[int]) -> list[Result]:
    """The results of all ranks, each in the order of its share, in the order of the sentences."""
    found: dict[int, Result] = {}
    for rank, results in enumerate(gathered):
        found.update(zip(share_of(lengths, rank, len(gathered)), results, strict=True))
    return [found[number] for number in range(len(lengths))]
