"""Whether all ranks have the same weights and second moments, to the bit."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor

from tandem.errors import TandemError
from tandem.parallel.world import World

__all__ = ["check_weights", "checksums"]

_PIECE = 1 << 18
"""Numbers that are multiplied at a time: their products take 2 MB."""
_MULTIPLIERS = (6364136223846793005, 2685821657736338717)
"""Odd numbers below 2**63 with well-mixed bits, of known random number generators."""


def check_weights(tensors: Mapping[str, Tensor], world: World, *, step: int) -> None:
    """Compare checksums over all ranks; TandemError on each of them, naming ranks and tensor, where two differ."""
    if world.size == 1:
        return
    own = checksums(tensors)
    least, most = own.clone(), own.clone()
    world.smallest(least)
    world.largest(most)
    if torch.equal(least, most):
        return
    checksums_by_rank = cast(list[list[int]], world.gather(own.tolist()))
    for number, name in enumerate(tensors):
        first = checksums_by_rank[0][number]
        other = next((rank for rank in range(world.size) if checksums_by_rank[rank][number] != first), None)
        if other is not None:
            raise TandemError(
                f"Rank 0 and rank {other} differ after step {step}, first in {name}: check the memory of both "
                "machines, and go on from an earlier checkpoint."
            )


def checksums(tensors: Mapping[str, Tensor]) -> Tensor:
    """Checksum each fp32 tensor: the sum of its numbers' bits, each times an odd factor of its position, modulo 2**64.

    Integers that wrap are exact in any order of summation, so a CPU and a GPU agree.
    """
    factors = _factors(next(iter(tensors.values())).device)
    return torch.stack([_checksum(tensor.detach(), factors) for tensor in tensors.values()])


def _checksum(tensor: Tensor, factors: Tensor) -> Tensor:
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for bits in torch.split(tensor.view(torch.int32).flatten(), _PIECE):
        total = total * _MULTIPLIERS[0] + (bits * factors[: len(bits)]).sum()
    return total


def _factors(device: torch.device) -> Tensor:
    """Odd factors of the positions in a piece; without the mixing, changes that balance could go unnoticed."""
    factors = torch.arange(1, _PIECE + 1, device=device) * _MULTIPLIERS[0]
    return (factors ^ factors >> 32) * _MULTIPLIERS[1] | 1
