"""One launch over flat buffers makes the step that torch's AdamW makes parameter by parameter."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from tandem.kernels.adam import ADAM_NUMBERS, adam_, squares_sum

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


def apply(
    held: Buffers,
    at_step: Tensor,
    *,
    decay: float = 0.0,
    decayed: int = 0,
    halves: Tensor | None = None,
    clear: bool = False,
) -> None:
    adam_(
        held.weights,
        held.gradients,
        held.first,
        held.second,
        numbers=at_step,
        betas=BETAS,
        epsilon=EPSILON,
        decay=decay,
        decayed=decayed,
        halves=halves,
        clear=clear,
    )


def torch_adam(weights: Tensor, *, decay: float, decayed: int) -> torch.optim.AdamW:
    matrices, vectors = weights[:decayed], weights[decayed:]
    groups = [{"params": [matrices], "weight_decay": decay}, {"params": [vectors], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=BETAS, eps=EPSILON, fused=True)


def assert_within(actual: Tensor, expected: Tensor, *, ulps: float, scale: Tensor) -> None:
    """Apart by no more than a few units in the last place of the largest number that goes in."""
    assert actual.isfinite().all()
    assert float(((actual - expected).abs() / scale).max()) <= ulps * ULP


@pytest.mark.parametrize("divisor", [1.0, 4096.0, 3.7])
def test_steps_are_those_of_torch_within_rounding(divisor: float) -> None:
    length, decayed, decay = 3000, 1800, 0.1
    held = buffers(length)
    held.first.zero_()
    held.second.zero_()
    expected = held.copy()
    adam = torch_adam(expected.weights, decay=decay, decayed=decayed)
    adam.grad_scale = torch.tensor(divisor, device=DEVICE)  # type: ignore[attr-defined]
    adam.found_inf = torch.tensor(0.0, device=DEVICE)  # type: ignore[attr-defined]
    for step in range(1, 5):
        fresh = buffers(length, seed=step).gradients * divisor
        held.gradients.copy_(fresh)
        adam.param_groups[0]["params"][0].grad = fresh[:decayed].clone()
        adam.param_groups[1]["params"][0].grad = fresh[decayed:].clone()
        learning_rate = 1e-3 * step
        for group in adam.param_groups:
            group["lr"] = learning_rate
        before = expected.weights.abs().clone()
        apply(
            held,
            numbers(step, learning_rate=learning_rate, divisor=divisor),
            decay=decay,
            decayed=decayed,
        )
        adam.step()
        assert_within(held.weights, expected.weights, ulps=2 * step, scale=before.clamp_min(1e-2))
    for ours, theirs in ((held.first, "exp_avg"), (held.second, "exp_avg_sq")):
        kept = torch.cat([adam.state[group["params"][0]][theirs] for group in adam.param_groups])
        assert_within(ours, kept, ulps=8, scale=kept.abs().clamp_min(0.1))


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
    expected = weights * (1 - rate * 0.1) - moved
    apply(held, at_step, decay=0.1, decayed=2100)
    assert_within(held.second, second, ulps=2, scale=second)
    assert_within(held.first, first, ulps=2, scale=gradients.abs().maximum(first.abs()))
    assert_within(held.weights, expected, ulps=1, scale=weights.abs().maximum(moved.abs()))


@pytest.mark.parametrize("decayed", [0, 1, 1024, 1500, 2000])
def test_decay_ends_where_the_vectors_begin(decayed: int) -> None:
    held = buffers(2000)
    plain = held.copy()
    apply(held, numbers(3), decay=0.5, decayed=decayed)
    apply(plain, numbers(3))
    changed = held.weights != plain.weights
    assert changed[:decayed].all()
    assert not changed[decayed:].any()


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
    apply(held, numbers(2), clear=True)
    for now, then in (
        (whole.weights, before.weights),
        (whole.gradients, before.gradients),
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


@pytest.mark.parametrize("clear", [False, True])
def test_a_skipped_step_changes_no_weight_and_no_moment(clear: bool) -> None:
    held = buffers(1500)
    held.gradients[700] = torch.nan
    before = held.copy()
    halves = torch.full((1500,), 3.0, dtype=torch.float16, device=DEVICE)
    at_step = numbers(5, divisor=math.nan, skipped=True)
    apply(held, at_step, decay=0.1, decayed=1500, halves=halves, clear=clear)
    assert torch.equal(held.weights, before.weights)
    assert torch.equal(held.first, before.first)
    assert torch.equal(held.second, before.second)
    assert (halves == 3.0).all()
    if clear:
        assert not held.gradients.any()
    else:
        assert torch.equal(held.gradients.nan_to_num(9.0), before.gradients.nan_to_num(9.0))


def test_gradients_stay_unless_they_are_to_be_cleared() -> None:
    held = buffers(1500)
    before = held.gradients.clone()
    apply(held, numbers(5))
    assert torch.equal(held.gradients, before)
    apply(held, numbers(6), clear=True)
    assert not held.gradients.any()


@pytest.mark.parametrize("length", [1, 4096, 4097, 30_000])
def test_the_sum_of_squares_is_right_and_the_same_each_time(length: int) -> None:
    flat = buffers(length).weights
    total = squares_sum(flat)
    assert total.shape == ()
    torch.testing.assert_close(total.double(), flat.double().square().sum(), rtol=1e-6, atol=0.0)
    assert torch.equal(total, squares_sum(flat))


def test_partial_sums_of_several_blocks_leave_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.kernels.adam._MOST_PARTIAL_SUMS", 3)
    flat = buffers(7 * 4096 + 11).weights
    torch.testing.assert_close(squares_sum(flat).double(), flat.double().square().sum(), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_one_number_that_is_not_finite_shows_in_the_sum(value: float) -> None:
    flat = buffers(5000).weights
    flat[4321] = value
    assert not squares_sum(flat).isfinite()
