"""A difference between the weights of two ranks is found, and named."""

import torch
from tests.distributed.ranks import run_ranks

from tandem.errors import TandemError
from tandem.parallel.world import SoloWorld, World
from tandem.train.weight_check import check_weights, checksums


def test_a_flipped_bit_changes_the_checksum_of_its_tensor_alone() -> None:
    weights = {"a": torch.randn(1000), "b": torch.randn(10, 10)}
    before = checksums(weights)
    weights["b"].view(torch.int32)[3, 3] ^= 1
    after = checksums(weights)
    assert after[0] == before[0]
    assert after[1] != before[1]


def check(world: World, spoilt: int | None) -> str:
    weights = {"first": torch.ones(50), "second": torch.ones(5, 5)}
    if world.rank == spoilt:
        weights["second"][2, 2] += 1e-7
    try:
        check_weights(weights, world, step=12)
    except TandemError as error:
        return str(error)
    return ""


def test_ranks_that_differ_all_hear_which_and_in_what() -> None:
    assert run_ranks(check, 3, None) == [""] * 3
    told = run_ranks(check, 3, 2)
    assert told == [told[0]] * 3
    assert told[0].startswith("Rank 0 and rank 2 have different weights after step 12")
    assert "second" in told[0]


def test_one_process_has_nobody_to_differ_from() -> None:
    check_weights({"a": torch.ones(1)}, SoloWorld(device=torch.device("cpu")), step=1)
