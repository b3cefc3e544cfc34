"""Rows in fp8: near what they stand for, each by a scale of its own, and what else a pass does on the way."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from tandem.kernels.quantize import QUARTER, Quarter, quantize, quantize_gradient_, quantize_rectified_

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPES = [torch.float16, torch.bfloat16]
LARGEST = 448.0
STEP = 2**-4
"""How far a number is from the nearest fp8 one at most, as a share of itself."""
SMALLEST_STEP = 2**-10 / LARGEST
"""The same for tiny numbers, as a share of the row's largest."""


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def draw(rows: int, width: int, dtype: torch.dtype = torch.float16) -> Tensor:
    """Rows of very different size."""
    sizes = torch.logspace(-3, 3, rows, device=DEVICE)[:, None]
    return (torch.randn(rows, width, device=DEVICE) * sizes).to(dtype)


def restored(quarter: Quarter) -> Tensor:
    return quarter.values.double() * quarter.scales.double()


def assert_stands_for(quarter: Quarter, x: Tensor) -> None:
    assert quarter.values.dtype == QUARTER
    assert quarter.scales.shape == (len(x), 1)
    x = x.double()
    largest = x.abs().amax(1, keepdim=True)
    torch.testing.assert_close(quarter.scales.double(), largest / LARGEST, rtol=1e-6, atol=1e-30)
    bound = torch.maximum(x.abs() * STEP, largest * SMALLEST_STEP) * (1 + 1e-5)
    assert ((restored(quarter) - x).abs() <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "width"), [(7, 32), (21, 512), (9, 1024), (3, 1536), (2, 4096)])
def test_every_number_is_as_near_as_fp8_can_be(rows: int, width: int, dtype: torch.dtype) -> None:
    x = draw(rows, width, dtype)
    before = x.clone()
    assert_stands_for(quantize(x), x)
    assert torch.equal(x, before)


def test_the_largest_of_a_row_survives_to_a_rounding_error() -> None:
    x = draw(50, 64)
    found = restored(quantize(x)).abs().amax(1)
    torch.testing.assert_close(found, x.double().abs().amax(1), rtol=1e-6, atol=0)


def test_rows_of_zeros_stay_zero_and_those_of_tiny_numbers_finite() -> None:
    x = torch.zeros(3, 32, device=DEVICE)
    x[1] = 1e-37
    quarter = quantize(x)
    assert not quarter.values.double().any()
    assert quarter.scales.isfinite().all()


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_so(bad: float) -> None:
    x = draw(4, 64)
    x[2, 5] = bad
    found = restored(quantize(x)).isfinite().all(1)
    assert found.tolist() == [True, True, False, True]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "width"), [(7, 32), (5, 2048)])
def test_relu_is_done_in_place_on_the_way(rows: int, width: int, dtype: torch.dtype) -> None:
    x = draw(rows, width, dtype)
    expected = x.relu()
    quarter = quantize_rectified_(x)
    assert torch.equal(x, expected)
    assert_stands_for(quarter, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize(("rows", "width"), [(300, 32), (11, 1536), (5, 4096)])
def test_gradients_are_summed_by_column_on_the_way_and_go_back_through_relu(
    rows: int, width: int, rectified: bool, dtype: torch.dtype
) -> None:
    grad = draw(rows, width, dtype)
    active = torch.randn(rows, width, device=DEVICE).to(dtype).relu() if rectified else None
    expected = grad.clone() if active is None else grad * (active > 0)
    sums = torch.ones(width, device=DEVICE)
    quarter = quantize_gradient_(grad, active, sums_C=sums)
    assert torch.equal(grad, expected)
    assert_stands_for(quarter, expected)
    size = expected.double().abs().sum(0)
    assert ((sums.double() - 1 - expected.double().sum(0)).abs() <= 1e-5 * (size + 1)).all()


def test_gradients_that_do_not_lie_together_are_read_all_the_same() -> None:
    grad = draw(6, 64)[:, ::2]
    sums = torch.zeros(32, device=DEVICE)
    assert_stands_for(quantize_gradient_(grad, None, sums_C=sums), grad)
    torch.testing.assert_close(sums.double(), grad.double().sum(0), rtol=1e-4, atol=1e-2)
