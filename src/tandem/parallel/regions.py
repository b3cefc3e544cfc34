"""Which numbers of a bucket of gradients are encoded, and which are always summed exactly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = ["BLOCK", "BucketRegions", "cut_blocks", "find_regions", "gather", "scatter"]

BLOCK = 64
"""Numbers that are encoded together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRegions:
    """Ranges of the flat buffer that one bucket consists of, as (start, stop), without the gaps between parameters."""

    coded: tuple[tuple[int, int], ...]
    """Whole blocks, each range inside one matrix."""
    exact: tuple[tuple[int, int], ...]
    """Vectors, ends of matrices that fill no block, and slots."""

    @property
    def coded_numbers(self) -> int:
        """How many numbers are encoded."""
        return _count(self.coded)

    @property
    def exact_numbers(self) -> int:
        """How many numbers are summed as they are."""
        return _count(self.exact)


def find_regions(
    parameters: Sequence[nn.Parameter],
    starts: Sequence[int],
    bounds: Sequence[tuple[int, int]],
    *,
    slots: int,
) -> list[BucketRegions]:
    """The regions of each bucket; `starts` are of the parameters, `bounds` of the buckets, slots end the last one."""
    regions = []
    for first, last in bounds:
        inside = [
            (parameter, start)
            for parameter, start in zip(parameters, starts, strict=False)
            if first <= start < last
        ]
        coded = [(start, start + _in_blocks(parameter)) for parameter, start in inside]
        exact = [(start + _in_blocks(parameter), start + parameter.numel()) for parameter, start in inside]
        if last == bounds[-1][1] and slots:
            exact.append((last - slots, last))
        regions.append(BucketRegions(coded=_filled(coded), exact=_filled(exact)))
    return regions


def cut_blocks(numbers: int, parts: int) -> list[tuple[int, int]]:
    """Cut a range of whole blocks into nearly equal ranges of whole blocks; some are empty if there are too few."""
    blocks = numbers // BLOCK
    bounds = [BLOCK * (blocks * part // parts) for part in range(parts + 1)]
    return list(pairwise(bounds))


def gather(flat: Tensor, ranges: Sequence[tuple[int, int]], out: Tensor) -> Tensor:
    """Copy ranges of a flat tensor into one contiguous tensor."""
    if ranges:
        torch.cat([flat[start:stop] for start, stop in ranges], out=out)
    return out


def scatter(values: Tensor, ranges: Sequence[tuple[int, int]], flat: Tensor) -> None:
    """Copy a contiguous tensor back into ranges of a flat one."""
    for (start, stop), part in zip(ranges, _split(values, ranges), strict=True):
        flat[start:stop].copy_(part)


def _split(values: Tensor, ranges: Sequence[tuple[int, int]]) -> Iterator[Tensor]:
    yield from torch.split_with_sizes(values, [stop - start for start, stop in ranges])


def _in_blocks(parameter: nn.Parameter) -> int:
    return parameter.numel() // BLOCK * BLOCK if parameter.ndim > 1 else 0


def _filled(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((start, stop) for start, stop in ranges if stop > start)


def _count(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(stop - start for start, stop in ranges)
