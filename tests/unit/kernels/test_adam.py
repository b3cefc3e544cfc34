"""One launch over flat buffers makes a step of Adam."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from tandem.kernels.adam import ADAM_NUMBERS, adam_

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BETAS = (0.9, 0.98)
EPSILON = 1e-9
ULP = torch.finfo(torch.float32).eps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Buffers:
    weights: Tensor
    gradients: Tensor
    first: Tensor
    second: Tensor

    def copy(self) -> "Buffers":
        return Buffers(
            weights=self.weights.clone(),
            gradients=self.gradients.clone(),
            first=self.first.clone(),
            second=self.second.clone(),
        )


def buffers(length: int, *, seed: int = 0) -> Buffers:
    """As they are in the middle of a run."""
    generator = torch.Generator().manual_seed(length + seed)
    weights, gradients, first, second = torch.randn(4, length, generator=generator)
    return Buffers(
        weights=weights.to(DEVICE),
        gradients=gradients.to(DEVICE),
        first=(first * 0.1).to(DEVICE),
        second=(second.square() * 0.01).to(DEVICE),
    )


def numbers(step: int, *, learning_rate: float = 1e-3, divisor: float = 1.0, skipped: bool = False) -> Tensor:
    held = {
        "learning_rate": learning_rate,
        "first_correction": 1 - BETAS[0] ** step,
        "second_correction": math.sqrt(1 - BETAS[1] ** step),
        "divisor": divisor,
        "skipped": float(skipped),
    }
    return torch.tensor([held[name] for name in ADAM_NUMBERS], dtype=torch.float32, device=DEVICE)


def apply(held: Buffers, at_step: Tensor, *, halves: Tensor | None = None) -> None:
    adam_(
        held.weights,
        held.gradients,
        held.first,
        held.second,
        numbers=at_step,
        betas=BETAS,
        epsilon=EPSILON,
        halves=halves,
    )


def assert_within(actual: Tensor, expected: Tensor, *, ulps: float, scale: Tensor) -> None:
    """Apart by no more than a few units in the last place of the largest number that goes in."""
    assert actual.isfinite().all()
    assert float(((actual - expected).abs() / scale).max()) <= ulps * ULP


def test_one_step_is_exact_arithmetic_rounded() -> None:
    held = buffers(2100)
    weights, gradients, first, second = (
        each.double() for each in (held.weights, held.gradients, held.first, held.second)
    )
    at_step = numbers(7, divisor=3.7)
    rate, first_correction, second_correction, divisor, _ = at_step.double()
    gradients /= divisor
    first = BETAS[0] * first + (1 - BETAS[0]) * gradients
    second = BETAS[1] * second + (1 - BETAS[1]) * gradients.square()
    moved = rate / first_correction * first / (second.sqrt() / second_correction + EPSILON)
    expected = weights - moved
    apply(held, at_step)
    assert_within(held.second, second, ulps=2, scale=second)
    assert_within(held.first, first, ulps=2, scale=gradients.abs().maximum(first.abs()))
    assert_within(held.weights, expected, ulps=2, scale=weights.abs().maximum(moved.abs()))


@pytest.mark.parametrize("length", [1, 1023, 1024, 1025, 2500])
def test_nothing_is_written_beyond_the_end(length: int) -> None:
    whole = buffers(length + 40)
    before = whole.copy()
    held = Buffers(
        weights=whole.weights[:length],
        gradients=whole.gradients[:length],
        first=whole.first[:length],
        second=whole.second[:length],
    )
    apply(held, numbers(2))
    assert torch.equal(whole.gradients, before.gradients)
    for now, then in (
        (whole.weights, before.weights),
        (whole.first, before.first),
        (whole.second, before.second),
    ):
        assert torch.equal(now[length:], then[length:])
        assert (now[:length] != then[:length]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_the_new_weights(dtype: torch.dtype) -> None:
    held = buffers(1500)
    halves = torch.full((1500,), torch.nan, dtype=dtype, device=DEVICE)
    apply(held, numbers(5), halves=halves)
    # The interpreter cuts bfloat16 off instead of rounding it.
    tolerance = 0.0 if DEVICE == "cuda" or dtype == torch.float16 else torch.finfo(dtype).eps
    torch.testing.assert_close(halves, held.weights.to(dtype), rtol=tolerance, atol=0.0)


def test_a_skipped_step_changes_no_weight_and_no_moment() -> None:
    held = buffers(1500)
    held.gradients[700] = torch.nan
    before = held.copy()
    halves = torch.full((1500,), 3.0, dtype=torch.float16, device=DEVICE)
    apply(held, numbers(5, divisor=math.nan, skipped=True), halves=halves)
    assert torch.equal(held.weights, before.weights)
    assert torch.equal(held.first, before.first)
    assert torch.equal(held.second, before.second)
    assert (halves == 3.0).all()
