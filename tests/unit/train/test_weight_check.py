"""A difference between the weights of two ranks is found, and named."""

from operator import mul

import torch
from tests.distributed.ranks import run_ranks

from tandem.errors import TandemError
from tandem.parallel.world import SoloWorld, World
from tandem.train.weight_check import _factors, check_weights, checksums


def test_a_flipped_bit_changes_the_checksum_of_its_tensor_alone() -> None:
    weights = {"a": torch.randn(1000), "b": torch.randn(10, 10)}
    before = checksums(weights)
    weights["b"].view(torch.int32)[3, 3] ^= 1
    after = checksums(weights)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_changes_that_balance_each_other_change_the_checksum() -> None:
    bits = torch.arange(600_000, dtype=torch.int32) * 7 % 1000
    changes = {
        "neighbours swapped": ([10, 11], bits[[11, 10]]),
        "far ones swapped": ([10, 599_999], bits[[599_999, 10]]),
        "the same place of two pieces swapped": ([5, 5 + 2**18], bits[[5 + 2**18, 5]]),
        "one up, one down": ([20, 21], bits[[20, 21]] + torch.tensor([1, -1], dtype=torch.int32)),
        "one up, two down, one up": ([20, 21, 22], bits[20:23] + torch.tensor([1, -2, 1], dtype=torch.int32)),
        "two signs": ([30, 31], bits[30:32] ^ torch.tensor(-(2**31), dtype=torch.int32)),
    }
    before = checksums({"a": bits.view(torch.float32)})
    for name, (places, values) in changes.items():
        changed = bits.clone()
        changed[places] = values
        assert not torch.equal(changed, bits), name
        assert checksums({"a": changed.view(torch.float32)}) != before, name


def test_a_checksum_is_the_one_that_python_reckons() -> None:
    weight = torch.randn(300_000)
    total = 0
    for start in range(0, 300_000, 2**18):
        piece = weight.view(torch.int32)[start : start + 2**18].tolist()
        total = total * 6364136223846793005 + sum(map(mul, piece, _factors(torch.device("cpu")).tolist()))
    assert int(checksums({"a": weight})) % 2**64 == total % 2**64


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
    assert told[0].startswith("Rank 0 and rank 2 differ after step 12, first in second: ")


def test_one_process_has_nobody_to_differ_from() -> None:
    check_weights({"a": torch.ones(1)}, SoloWorld(device=torch.device("cpu")), step=1)
