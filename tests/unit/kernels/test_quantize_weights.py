"""A model's matrices in fp8: as they are and turned, with one scale each, and new when they change."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from tandem.kernels.quantize import QUARTER, Quarter
from tandem.kernels.quantize_weights import QuarterMatrices

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = [(48, 32), (16, 160), (272, 144)]
GAP = 16


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def draw(dtype: torch.dtype = torch.float16) -> list[Tensor]:
    """Matrices of different size in one tensor, with numbers between them that are none of theirs."""
    flat = torch.full((200_000,), 1e4, device=DEVICE).to(dtype)
    held, place = [], GAP
    for number, (rows, columns) in enumerate(SHAPES):
        part = flat[place : place + rows * columns].view(rows, columns)
        held.append(part.normal_(std=0.01 * 10**number))
        place += rows * columns + GAP
    return held


def restored(quarter: Quarter) -> Tensor:
    return quarter.values.float() * quarter.scales


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matrices_are_as_near_as_fp8_can_be_and_the_same_turned(dtype: torch.dtype) -> None:
    halves = draw(dtype)
    quarters = QuarterMatrices(halves)
    quarters.renew()
    assert len(quarters.matrices) == len(halves)
    for half, matrix in zip(halves, quarters.matrices, strict=True):
        largest = float(half.float().abs().max())
        assert matrix.straight.values.dtype == QUARTER
        assert matrix.straight.values.is_contiguous()
        assert matrix.turned.values.is_contiguous()
        expected = torch.full((len(half), 1), largest / 448, device=DEVICE)
        torch.testing.assert_close(matrix.straight.scales, expected)
        bound = torch.maximum(half.float().abs() * 2**-4, torch.tensor(largest * 2**-10 / 448)) * (1 + 1e-5)
        assert ((restored(matrix.straight) - half.float()).abs() <= bound).all()
        assert torch.equal(restored(matrix.turned), restored(matrix.straight).T)


def test_new_weights_are_followed() -> None:
    halves = draw()
    quarters = QuarterMatrices(halves)
    quarters.renew()
    first = [restored(matrix.straight) for matrix in quarters.matrices]
    halves[1].mul_(-2)
    quarters.renew()
    again = [restored(matrix.straight) for matrix in quarters.matrices]
    assert torch.equal(again[0], first[0])
    assert torch.equal(again[1], -2 * first[1])
    assert torch.equal(again[2], first[2])
