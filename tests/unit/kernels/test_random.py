"""Which elements dropout keeps: the share that was asked for, and other ones at every site and for every seed."""

import pytest
import torch
import triton
import triton.language as tl
from torch import Tensor

from tandem.kernels.random import kept, threshold_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
COUNT = 1 << 16


@triton.jit(do_not_specialize=["site", "threshold"])  # type: ignore[untyped-decorator]
def _keep(out_ptr, seed_ptr, site, threshold, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, kept(seed_ptr, site, offsets, threshold).to(tl.int8))


def keep(share: float, *, seed: tuple[int, int] = (3, 4), site: int = 0) -> Tensor:
    out = torch.full((COUNT,), 7, dtype=torch.int8, device=DEVICE)
    seeds = torch.tensor(seed, dtype=torch.int32, device=DEVICE)
    _keep[COUNT // 4096,](out, seeds, site, threshold_of(share), BLOCK=4096)
    assert out.max() <= 1
    return out.double().cpu()


def correlation(first: Tensor, second: Tensor) -> float:
    return float(torch.corrcoef(torch.stack((first, second)))[0, 1])


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("seed", [(0, 0), (-1, 2**31 - 1)])
def test_the_share_that_was_asked_for_is_dropped(share: float, seed: tuple[int, int]) -> None:
    five_deviations = 5 * (share * (1 - share) / COUNT) ** 0.5
    assert abs(1 - float(keep(share, seed=seed).mean()) - share) < five_deviations


def test_the_same_seed_and_site_keep_the_same_elements() -> None:
    assert torch.equal(keep(0.3, site=5), keep(0.3, site=5))


@pytest.mark.parametrize("other", [1, 2, 17])
def test_sites_are_independent(other: int) -> None:
    assert abs(correlation(keep(0.5), keep(0.5, site=other))) < 5 / COUNT**0.5


@pytest.mark.parametrize("other", [(4, 4), (3, 5), (4, 3), (-3, 4)])
def test_seeds_are_independent(other: tuple[int, int]) -> None:
    assert abs(correlation(keep(0.5), keep(0.5, seed=other))) < 5 / COUNT**0.5


@pytest.mark.parametrize("shift", [1, 2, 8, 32, 512])
def test_neighbours_and_other_sites_that_are_shifted_are_independent(shift: int) -> None:
    first = keep(0.5)
    for second in (first, keep(0.5, site=1)):
        assert abs(correlation(first[shift:], second[:-shift])) < 5 / (COUNT - shift) ** 0.5


def test_a_larger_share_keeps_fewer_of_the_same_elements() -> None:
    assert bool((keep(0.6) <= keep(0.2)).all())
