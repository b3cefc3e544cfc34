"""Embedding rows with sinusoids and dropout like the model's own, and gradients summed over equal ids."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from tandem.kernels import embedding
from tandem.model.positions import build_positions

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The product of half matrices in bf16 is wrong in Triton's interpreter.
GRADIENTS = [torch.float16, torch.float32] + ([torch.bfloat16] if DEVICE == "cuda" else [])
VOCABULARY = 50
SCALE = 5.0


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def seed() -> Tensor:
    return torch.tensor([7, 8], dtype=torch.int32, device=DEVICE)


def whole_numbers(limit: int, count: int) -> Tensor:
    return torch.randint(limit, (count,), dtype=torch.int32, device=DEVICE)


def forward(
    ids: Tensor, positions: Tensor, weight: Tensor, *, sinusoidal: bool, share: float, dtype: torch.dtype
) -> Tensor:
    return embedding.forward(
        ids,
        positions,
        weight,
        scale=SCALE,
        sinusoidal=sinusoidal,
        share=share,
        seed=seed(),
        site=2,
        dtype=dtype,
    )


def factors(tokens: int, width: int, *, share: float) -> Tensor:
    """What dropout multiplies with: seen where every row holds what the scale makes ones."""
    zeros = torch.zeros(tokens, dtype=torch.int32, device=DEVICE)
    weight = torch.full((1, width), 1 / SCALE, device=DEVICE)
    return forward(zeros, zeros, weight, sinusoidal=False, share=share, dtype=torch.float32).double()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("width", [1, 2, 33, 64, 96])
@pytest.mark.parametrize("sinusoidal", [False, True])
def test_rows_are_scaled_placed_and_dropped(sinusoidal: bool, width: int, dtype: torch.dtype) -> None:
    ids, positions = whole_numbers(VOCABULARY, 37), whole_numbers(400, 37)
    weight = torch.randn(VOCABULARY, width, device=DEVICE).half()
    x = forward(ids, positions, weight, sinusoidal=sinusoidal, share=0.2, dtype=dtype)
    expected = weight.double()[ids] * SCALE
    if sinusoidal:
        waves = build_positions("sinusoidal", positions, width=width, heads=1).sinusoids_XD
        assert waves is not None
        expected = expected + waves
    expected = expected * factors(37, width, share=0.2)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-4}[dtype]
    assert x.dtype == dtype
    torch.testing.assert_close(x.double(), expected, rtol=tolerance, atol=tolerance)


def test_sinusoids_are_right_far_from_the_start() -> None:
    # Triton's interpreter rounds twice where a GPU does once.
    limit, tolerance = (65_536, 1e-6) if DEVICE == "cuda" else (400, 5e-5)
    positions = torch.cat((torch.arange(9, device=DEVICE), limit - 1 - whole_numbers(limit // 2, 200)))
    ids, weight = torch.zeros_like(positions), torch.zeros(1, 2, device=DEVICE)
    # The first wave of all turns by one radian a place.
    x = forward(ids, positions, weight, sinusoidal=True, share=0.0, dtype=torch.float32)
    expected = torch.stack((positions.double().sin(), positions.double().cos()), 1)
    torch.testing.assert_close(x.double(), expected, rtol=0, atol=tolerance)


def test_dropout_drops_its_share_and_makes_up_for_it() -> None:
    seen = factors(200, 64, share=0.25)
    kept = seen[seen > 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 4 / 3), rtol=1e-6, atol=0)
    assert abs(float((seen == 0).double().mean()) - 0.25) < 0.03


def summed_gradient(grad: Tensor, ids: Tensor, *, share: float, rows: int) -> Tensor:
    weight_grad = torch.ones(rows, grad.shape[1], device=DEVICE)
    embedding.backward(
        grad,
        embedding.sort_ids(ids),
        scale=SCALE,
        share=share,
        seed=seed(),
        site=2,
        weight_grad_VD=weight_grad,
    )
    return weight_grad


IDS = {
    "all different": torch.randperm(100).int(),
    "all the same": torch.full((1200,), 7, dtype=torch.int32),
    "pairs over the edges of groups": (torch.arange(129) + 1).int() // 2,
    "whole groups": torch.tensor([1] * 16 + [2] * 32 + [3] * 15 + [4] * 17, dtype=torch.int32),
    "few and many": torch.cat((torch.full((300,), 5), torch.randint(100, (140,)))).int(),
    "one": torch.tensor([9], dtype=torch.int32),
}


@pytest.mark.parametrize("dtype", GRADIENTS)
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("case", IDS)
def test_gradients_of_equal_ids_are_added_up(case: str, share: float, dtype: torch.dtype) -> None:
    ids, width = IDS[case].to(DEVICE), 48
    ids = ids[torch.randperm(len(ids)).to(DEVICE)]
    grad = torch.randn(len(ids), width, device=DEVICE).to(dtype)
    weight_grad = summed_gradient(grad, ids, share=share, rows=110)
    dropped = SCALE * factors(len(ids), width, share=share) * grad.double()
    expected = torch.ones(110, width, dtype=torch.float64, device=DEVICE).index_add_(0, ids, dropped)
    torch.testing.assert_close(weight_grad.double(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("width", [16, 130, 257])
def test_any_width_has_its_gradient(width: int) -> None:
    ids = whole_numbers(20, 70)
    grad = torch.randn(70, width, device=DEVICE).half()
    expected = torch.ones(20, width, dtype=torch.float64, device=DEVICE)
    expected.index_add_(0, ids, SCALE * grad.double())
    ours = summed_gradient(grad, ids, share=0.0, rows=20)
    torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=1e-3)


def test_rows_that_were_never_seen_are_not_touched() -> None:
    ids = whole_numbers(10, 90) * 2
    weight_grad = summed_gradient(torch.randn(90, 32, device=DEVICE).half(), ids, share=0.0, rows=20)
    assert torch.equal(weight_grad[1::2], torch.ones_like(weight_grad[1::2]))


def test_two_calls_give_the_same_bits() -> None:
    ids = whole_numbers(6, 400)
    grad = torch.randn(400, 32, device=DEVICE).half()
    first = summed_gradient(grad, ids, share=0.1, rows=6)
    assert torch.equal(first, summed_gradient(grad, ids, share=0.1, rows=6))
