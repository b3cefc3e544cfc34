"""Sketches tell norms and angles of long vectors, whole or in parts."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from tandem.parallel.sketch import _PIECE, SKETCH, Sketcher

DEVICE = torch.device("cpu")
NUMBERS = 3 * _PIECE + 12_345


def vector(seed: int, numbers: int = NUMBERS) -> Tensor:
    return torch.randn(numbers, generator=torch.Generator().manual_seed(seed))


def sketch(*parts: tuple[int, Tensor]) -> Tensor:
    result, sketcher = torch.zeros(SKETCH), Sketcher(seed=1, device=DEVICE)
    for start, values in parts:
        sketcher.add(result, values, start=start)
    return result


@pytest.mark.parametrize("numbers", [1, 100, SKETCH, 50_000, NUMBERS])
def test_the_norm_of_a_sketch_is_near_that_of_the_vector(numbers: int) -> None:
    values = vector(2, numbers)
    assert float(sketch((0, values)).norm() / values.norm()) == pytest.approx(1, abs=0.12)


def test_what_repeats_or_is_alike_in_long_stretches_is_no_exception() -> None:
    for values in (
        torch.ones(NUMBERS),
        vector(3, SKETCH).repeat(3000),
        vector(3, 3000).repeat_interleave(SKETCH),
    ):
        assert float(sketch((0, values)).norm() / values.norm()) == pytest.approx(1, abs=0.12)


def test_parts_add_up_wherever_a_vector_is_cut() -> None:
    values = vector(4)
    cuts = [0, 1, SKETCH + 7, _PIECE - 1, _PIECE + 5, 2 * _PIECE, NUMBERS]
    parts = [(start, values[start:stop]) for start, stop in pairwise(cuts)]
    torch.testing.assert_close(sketch(*parts), sketch((0, values)), rtol=1e-4, atol=1e-2)


def test_a_small_difference_of_large_vectors_is_seen() -> None:
    values, change = vector(5), vector(6) * 0.01
    apart = sketch((0, values + change)) - sketch((0, values))
    assert float(apart.norm() / change.norm()) == pytest.approx(1, abs=0.12)


def test_a_factor_may_be_on_the_device() -> None:
    result = torch.zeros(SKETCH)
    Sketcher(seed=1, device=DEVICE).add(result, vector(7), factor=torch.tensor(0.5))
    torch.testing.assert_close(result, sketch((0, vector(7))) / 2)
