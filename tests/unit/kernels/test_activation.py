"""Activation, gate and dropout in one pass: like PyTorch's in fp64, forward and backward."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tandem.kernels import activation

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
REFERENCE: dict[activation.Kind, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
}
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2}
ROWS = 21


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def seed() -> Tensor:
    return torch.tensor([7, 8], dtype=torch.int32, device=DEVICE)


def forward(inner: Tensor, *, kind: activation.Kind, gated: bool, share: float) -> Tensor:
    return activation.forward(inner, kind=kind, gated=gated, share=share, seed=seed(), site=3)


def factors(width: int, *, share: float) -> Tensor:
    """What dropout multiplies with: seen where the activation leaves ones."""
    ones = torch.ones(ROWS, width, device=DEVICE)
    return forward(ones, kind="relu", gated=False, share=share).double()


def reference(inner: Tensor, *, kind: activation.Kind, gated: bool, share: float) -> Tensor:
    if gated:
        active, gate = inner.chunk(2, dim=-1)
        out = REFERENCE[kind](active) * gate
    else:
        out = REFERENCE[kind](inner)
    return out * factors(out.shape[1], share=share)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("kind", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("width", [64, 300])
def test_output_and_gradients_are_those_of_pytorch(
    width: int, kind: activation.Kind, gated: bool, share: float, dtype: torch.dtype
) -> None:
    tolerance = TOLERANCE[dtype]
    inner = (2 * torch.randn(ROWS, width * (1 + gated), device=DEVICE)).to(dtype)
    out = forward(inner, kind=kind, gated=gated, share=share)
    leaf = inner.double().requires_grad_()
    expected = reference(leaf, kind=kind, gated=gated, share=share)
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=tolerance)

    grad_out = torch.randn(ROWS, width, device=DEVICE).to(dtype)
    expected.backward(grad_out.double())  # type: ignore[no-untyped-call]
    assert leaf.grad is not None
    bias_grad = torch.ones(inner.shape[1], device=DEVICE)
    grad_inner = activation.backward(
        grad_out, inner, kind=kind, gated=gated, share=share, seed=seed(), site=3, bias_grad_I=bias_grad
    )
    assert (grad_inner is grad_out) != gated
    torch.testing.assert_close(grad_inner.double(), leaf.grad, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(bias_grad.double(), leaf.grad.sum(0) + 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_relu_needs_only_what_it_put_out(share: float) -> None:
    inner = torch.randn(ROWS, 64, device=DEVICE).half()
    dropped = forward(inner, kind="relu", gated=False, share=share)
    grad = torch.randn(ROWS, 64, device=DEVICE).half()
    by_inner, by_relu, by_dropped = (
        activation.backward(
            grad.clone(), seen, kind="relu", gated=False, share=share, seed=seed(), site=3, bias_grad_I=None
        )
        for seen in (inner, inner.relu(), dropped)
    )
    assert torch.equal(by_relu, by_inner)
    assert torch.equal(by_dropped, by_inner)


def test_dropout_drops_its_share_and_makes_up_for_it() -> None:
    seen = factors(500, share=0.25)
    assert set(seen.float().flatten().tolist()) == {0.0, torch.tensor(4 / 3).item()}
    assert abs(float((seen == 0).double().mean()) - 0.25) < 0.03
