"""Column sums: like those of PyTorch in fp64, added to what is there, and the same bits each time."""

from collections.abc import Iterator

import pytest
import torch

from tandem.kernels.columns import add_column_sums, add_partials

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (100, 48), (300, 257), (33, 1536)])
def test_the_sum_of_each_column_is_added(rows: int, columns: int, dtype: torch.dtype) -> None:
    y = torch.randn(rows, columns, device=DEVICE).to(dtype)
    before = torch.randn(columns, device=DEVICE)
    into = before.clone()
    add_column_sums(y, into)
    torch.testing.assert_close(into.double(), before + y.double().sum(0), rtol=1e-5, atol=1e-4)


def test_rows_may_lie_apart() -> None:
    wide = torch.randn(70, 96, device=DEVICE).half()
    into = torch.zeros(32, device=DEVICE)
    add_column_sums(wide[:, 32:64], into)
    torch.testing.assert_close(into.double(), wide[:, 32:64].double().sum(0), rtol=1e-5, atol=1e-4)


def test_two_calls_give_the_same_bits() -> None:
    y = torch.randn(5000, 64, device=DEVICE).half()
    first, second = torch.zeros(2, 64, device=DEVICE)
    add_column_sums(y, first)
    add_column_sums(y, second)
    assert torch.equal(first, second)


@pytest.mark.parametrize("programs", [1, 5, 300])
def test_partial_sums_reach_the_vectors_that_are_there(programs: int) -> None:
    partials = torch.randn(3, programs, 40, device=DEVICE)
    first, third = torch.ones(2, 40, device=DEVICE)
    add_partials(partials, [first, None, third])
    expected = 1 + partials.double().sum(1)
    torch.testing.assert_close(first.double(), expected[0], rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(third.double(), expected[2], rtol=1e-5, atol=1e-4)
