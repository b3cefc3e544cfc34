"""Which numbers of each bucket a rank encodes: its share, and its host's part of that where hosts are many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from tandem.parallel.regions import BucketRegions, cut_blocks
from tandem.parallel.topology import Topology

__all__ = ["Owned", "Range", "ShareLayout", "add_owned", "own_layout", "take_owned"]

Range = tuple[int, int]
"""Start and stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """What a rank owns of one bucket, and where that lies in its residuals."""

    share: Range
    """Among the bucket's coded numbers."""
    part: Range
    """Of these what the rank sums for all hosts, where there are more than two; else empty."""
    in_share: Range
    """Where the share lies among all that the rank owns."""
    in_part: Range
    """Where the part lies among all parts that the rank owns."""

    def ranges(self, name: str) -> tuple[Range, Range]:
        """Of `share` or `part`: where it lies in the bucket, and in the residual of that name."""
        return (self.part, self.in_part) if name == "part" else (self.share, self.in_share)


class ShareLayout:
    """Cuts the coded numbers of every bucket into a share for each owner on a host, and shares into parts.

    The cut follows from numbers of hosts and shares alone, so that residuals of another cut can be found again.
    """

    def __init__(self, regions: Sequence[BucketRegions], *, hosts: int, shares: int) -> None:
        self.hosts, self.shares = hosts, shares
        self._numbers = [region.coded_numbers for region in regions]
        self.starts = [0, *accumulate(self._numbers)]
        """Where each bucket's coded numbers begin among those of all buckets."""

    @property
    def numbers(self) -> int:
        """Coded numbers of all buckets."""
        return self.starts[-1]

    @property
    def has_parts(self) -> bool:
        """Whether each host sums a part of every share for all: between two hosts it would double the rounding."""
        return self.hosts > 2

    def share(self, bucket: int, share: int) -> Range:
        """A share among the bucket's coded numbers."""
        return cut_blocks(self._numbers[bucket], self.shares)[share]

    def part(self, bucket: int, share: int, host: int) -> Range:
        """A host's part of a share, among the bucket's coded numbers."""
        start, stop = self.share(bucket, share)
        first, last = cut_blocks(stop - start, self.hosts)[host]
        return start + first, start + last

    def coded(self, bucket: int, share: int, host: int) -> Range:
        """What a host's owner of a share encodes for the others to decode: all of the share, or its part."""
        return self.part(bucket, share, host) if self.has_parts else self.share(bucket, share)

    def owned(self, share: int, host: int) -> list[Owned]:
        """All that an owner owns, by bucket."""
        owned = []
        share_end = part_end = 0
        for bucket in range(len(self._numbers)):
            share_range = self.share(bucket, share)
            part = self.part(bucket, share, host) if self.has_parts else (0, 0)
            share_start, share_end = share_end, share_end + share_range[1] - share_range[0]
            part_start, part_end = part_end, part_end + part[1] - part[0]
            owned.append(
                Owned(
                    share=share_range,
                    part=part,
                    in_share=(share_start, share_end),
                    in_part=(part_start, part_end),
                )
            )
        return owned


def own_layout(regions: Sequence[BucketRegions], topology: Topology) -> ShareLayout:
    """The layout for these hosts."""
    return ShareLayout(regions, hosts=len(topology.hosts), shares=topology.shares)


def add_owned(
    whole: Tensor, layout: ShareLayout, owned: Sequence[Owned], tensors: Mapping[str, Tensor]
) -> None:
    """Add an owner's residuals, `share` and `part`, to a tensor of all coded numbers."""
    for name, tensor in tensors.items():
        for start, each in zip(layout.starts, owned, strict=False):
            place, inside = each.ranges(name)
            whole[start + place[0] : start + place[1]] += tensor[slice(*inside)].to(whole.device)


def take_owned(whole: Tensor, layout: ShareLayout, owned: Sequence[Owned]) -> Tensor:
    """An owner's share of a tensor of all coded numbers."""
    shares = [
        whole[start + each.share[0] : start + each.share[1]]
        for start, each in zip(layout.starts, owned, strict=False)
    ]
    return torch.cat(shares)
