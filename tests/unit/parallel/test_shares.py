"""What of each bucket is encoded, by whom, and where its residuals lie."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from tandem.parallel.regions import BLOCK, cut_blocks, find_regions, gather, scatter
from tandem.parallel.shares import ShareLayout, add_owned, take_owned

PARAMETERS = [
    nn.Parameter(torch.zeros(10, 13)),  # two blocks, and 2 numbers more
    nn.Parameter(torch.zeros(70)),
    nn.Parameter(torch.zeros(3, 5)),  # no block
    nn.Parameter(torch.zeros(16, 16)),
]
STARTS = [0, 144, 224, 240]
BOUNDS = [(0, 224), (224, 504)]


def test_whole_blocks_of_matrices_are_encoded_and_the_rest_is_exact() -> None:
    first, last = find_regions(PARAMETERS, STARTS, BOUNDS, slots=8)
    assert first.coded == ((0, 128),)
    assert first.exact == ((128, 130), (144, 214))
    assert last.coded == ((240, 496),)
    assert last.exact == ((224, 239), (496, 504))
    assert (first.coded_numbers, last.exact_numbers) == (128, 23)


def test_regions_come_back_to_where_they_were_taken_from() -> None:
    flat = torch.arange(20.0)
    ranges = ((2, 5), (9, 10))
    values = gather(flat, ranges, torch.empty(4))
    assert values.tolist() == [2.0, 3.0, 4.0, 9.0]
    scatter(-values, ranges, flat)
    assert flat.tolist()[:11] == [0.0, 1.0, -2.0, -3.0, -4.0, 5.0, 6.0, 7.0, 8.0, -9.0, 10.0]
    assert gather(flat, (), torch.empty(0)).numel() == 0


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_cuts_are_whole_blocks_and_leave_nothing_out(parts: int) -> None:
    bounds = cut_blocks(5 * BLOCK, parts)
    assert bounds[0][0] == 0
    assert bounds[-1][1] == 5 * BLOCK
    assert all(before[1] == after[0] for before, after in pairwise(bounds))
    assert all(start % BLOCK == 0 for start, _ in bounds)


@pytest.mark.parametrize(("hosts", "shares"), [(2, 1), (2, 3), (3, 1), (4, 2)])
def test_each_number_is_decoded_from_one_message_of_each_share(hosts: int, shares: int) -> None:
    layout = ShareLayout(find_regions(PARAMETERS, STARTS, BOUNDS, slots=8), hosts=hosts, shares=shares)
    for bucket, numbers in enumerate((128, 256)):
        covered = torch.zeros(numbers)
        for share in range(shares):
            for host in range(hosts) if layout.has_parts else (0,):
                covered[slice(*layout.coded(bucket, share, host))] += 1
        assert covered.tolist() == [1.0] * numbers


def test_residuals_of_one_layout_can_be_shared_out_in_another() -> None:
    regions = find_regions(PARAMETERS, STARTS, BOUNDS, slots=8)
    before, after = ShareLayout(regions, hosts=3, shares=2), ShareLayout(regions, hosts=2, shares=1)
    whole = torch.zeros(before.numbers)
    for host in range(3):
        for share in range(2):
            owned = before.owned(share, host)
            shares = torch.full((owned[-1].in_share[1],), 1.0)
            parts = torch.full((owned[-1].in_part[1],), 10.0)
            add_owned(whole, before, owned, {"share": shares, "part": parts})
    # Each number is in the share of one owner on each of three hosts, and in the part of one of these.
    assert whole.tolist() == [13.0] * before.numbers
    assert torch.equal(take_owned(whole, after, after.owned(0, 1)), whole)
