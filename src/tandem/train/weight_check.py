"""Whether all ranks have the same weights, to the bit."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor

from tandem.errors import TandemError
from tandem.parallel.world import World

__all__ = ["check_weights", "checksums"]


def check_weights(weights: Mapping[str, Tensor], world: World, *, step: int) -> None:
    """Compare checksums over all ranks; TandemError on each of them, naming ranks and tensor, where two differ."""
    if world.size == 1:
        return
    own = checksums(weights)
    least, most = own.clone(), own.clone()
    world.smallest(least)
    world.largest(most)
    if torch.equal(least, most):
        return
    held = cast(list[list[int]], world.gather(own.tolist()))
    for number, name in enumerate(weights):
        other = next((rank for rank in range(world.size) if held[rank][number] != held[0][number]), None)
        if other is not None:
            raise TandemError(
                f"Rank 0 and rank {other} have different weights after step {step} (the first tensor that differs is "
                f"{name}): check the memory of both machines, and go on from an earlier checkpoint."
            )


def checksums(weights: Mapping[str, Tensor]) -> Tensor:
    """One whole number for each tensor, of the bits of all its numbers: sums of those are exact in any order."""
    return torch.stack(
        [weight.detach().view(torch.int32).sum(dtype=torch.int64) for weight in weights.values()]
    )
