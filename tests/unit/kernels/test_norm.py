"""Bias, dropout, residual sum and norm in one pass: like PyTorch's in fp64, forward and backward."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tandem.kernels import norm
from tandem.kernels.quantize import empty_quarter, finished

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SITE = 5
EPSILON = 1e-5
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-5}
HALVES = [torch.float16, torch.bfloat16]
WIDTHS = [32, 96, 300]


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """New tensors hold NaN until they are written."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def seed() -> Tensor:
    return torch.tensor([7, 8], dtype=torch.int32, device=DEVICE)


def close(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    assert actual.dtype == dtype
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(actual.double(), expected.double(), rtol=tolerance, atol=tolerance)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    kind: norm.Kind
    x: Tensor
    change: Tensor | None
    change_bias: Tensor | None
    weight: Tensor
    bias: Tensor | None
    half: torch.dtype
    share: float

    def forward(self) -> norm.Normed:
        return norm.forward(
            self.x,
            self.change,
            change_bias_D=self.change_bias,
            weight_D=self.weight,
            bias_D=self.bias,
            kind=self.kind,
            epsilon=EPSILON,
            share=self.share,
            seed=seed(),
            site=SITE,
            dtype=self.half,
        )

    def factors(self) -> Tensor:
        """What dropout multiplies with: seen in the sum of nothing and ones."""
        ones = torch.ones_like(self.x, dtype=self.half)
        seen = norm.forward(
            torch.zeros_like(self.x, dtype=torch.float32),
            ones,
            change_bias_D=None,
            weight_D=self.weight,
            bias_D=None,
            kind=self.kind,
            epsilon=EPSILON,
            share=self.share,
            seed=seed(),
            site=SITE,
            dtype=self.half,
        )
        return seen.sum.double()

    def summed(self) -> Tensor:
        if self.change is None:
            return self.x.double()
        change = self.change.double()
        if self.change_bias is not None:
            change = change + self.change_bias.double()
        return self.x.double() + self.factors() * change

    def normalised(self, summed: Tensor) -> Tensor:
        weight = self.weight.double()
        if self.kind == "rms":
            return functional.rms_norm(summed, summed.shape[1:], weight, EPSILON)
        bias = None if self.bias is None else self.bias.double()
        return functional.layer_norm(summed, summed.shape[1:], weight, bias, EPSILON)


def build(
    *,
    kind: norm.Kind = "layer",
    width: int = 96,
    half: torch.dtype = torch.float16,
    stream: torch.dtype = torch.float32,
    share: float = 0.0,
    has_change: bool = True,
) -> Case:
    rows = 23
    return Case(
        kind=kind,
        x=(2 * torch.randn(rows, width, device=DEVICE) + 1).to(stream),
        change=torch.randn(rows, width, device=DEVICE).to(half) if has_change else None,
        change_bias=torch.randn(width, device=DEVICE) if has_change else None,
        weight=torch.randn(width, device=DEVICE),
        bias=torch.randn(width, device=DEVICE) if kind == "layer" else None,
        half=half,
        share=share,
    )


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_sum_and_its_norm_are_those_of_pytorch(kind: norm.Kind, width: int, half: torch.dtype) -> None:
    for stream in (torch.float32, half):
        case = build(kind=kind, width=width, half=half, stream=stream, share=0.3)
        normed = case.forward()
        close(normed.sum, case.summed(), stream)
        close(normed.normed, case.normalised(normed.sum.double()), half)


@pytest.mark.parametrize("stream", [torch.float32, torch.float16])
def test_without_a_change_x_itself_is_normalised(stream: torch.dtype) -> None:
    case = build(stream=stream, has_change=False)
    normed = case.forward()
    assert normed.sum is case.x
    close(normed.normed, case.normalised(case.x.double()), torch.float16)


def test_dropout_drops_its_share_and_makes_up_for_it() -> None:
    factors = build(width=300, share=0.25).factors()
    assert set(factors.float().flatten().tolist()) == {0.0, torch.tensor(4 / 3).item()}
    assert abs(float((factors == 0).double().mean()) - 0.25) < 0.03


def gradients(
    case: Case, *, has_grad_sum: bool = True
) -> tuple[tuple[Tensor, Tensor | None], tuple[Tensor, ...], tuple[Tensor, Tensor | None, list[Tensor]]]:
    """Ours of x and the change, ours of the vectors, and the reference's of all."""
    summed = case.forward().sum
    grad_normed = torch.randn_like(summed, dtype=torch.float32).to(case.half)
    grad_sum = torch.randn_like(summed) if has_grad_sum else None
    vectors = tuple(torch.ones(3, summed.shape[1], device=DEVICE))
    ours = norm.backward(
        grad_normed,
        grad_sum,
        sum_ND=summed,
        weight_D=case.weight,
        kind=case.kind,
        epsilon=EPSILON,
        share=case.share,
        seed=seed(),
        site=SITE,
        has_change=case.change is not None,
        weight_grad_D=vectors[0],
        bias_grad_D=None if case.bias is None else vectors[1],
        change_bias_grad_D=None if case.change_bias is None else vectors[2],
    )
    leaf = summed.double().requires_grad_()
    weight = case.weight.double().requires_grad_()
    normalised = case.normalised(leaf) / case.weight.double() * weight
    if case.bias is not None:
        bias = case.bias.double()
        normalised = (case.normalised(leaf) - bias) / case.weight.double() * weight + bias
    normalised.backward(grad_normed.double())  # type: ignore[no-untyped-call]
    assert leaf.grad is not None
    assert weight.grad is not None
    by_x = leaf.grad + (0 if grad_sum is None else grad_sum.double())
    by_change = None if case.change is None else case.factors() * by_x
    by_vectors = [weight.grad + 1, grad_normed.double().sum(0) + 1 if case.bias is not None else vectors[1]]
    by_vectors.append(torch.ones_like(weight) if by_change is None else by_change.sum(0) + 1)
    return ours, vectors, (by_x, by_change, by_vectors)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_all_gradients_are_those_of_pytorch(kind: norm.Kind, width: int, half: torch.dtype) -> None:
    for stream in (torch.float32, half):
        case = build(kind=kind, width=width, half=half, stream=stream, share=0.3)
        (by_x, by_change), vectors, (x, change, expected) = gradients(case)
        assert by_change is not None
        assert change is not None
        close(by_x, x, stream)
        close(by_change, change, half)
        for ours, theirs in zip(vectors, expected, strict=True):
            torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-4, atol=1e-3)


def test_a_vector_that_has_no_gradient_is_left_alone() -> None:
    _, vectors, _ = gradients(build(kind="rms", has_change=False))
    assert torch.equal(vectors[1], torch.ones_like(vectors[1]))
    assert torch.equal(vectors[2], torch.ones_like(vectors[2]))


def test_without_a_gradient_of_the_sum_only_the_norm_gives_one() -> None:
    (by_x, _), _, (x, _, _) = gradients(build(), has_grad_sum=False)
    close(by_x, x, torch.float32)


@pytest.mark.parametrize(("stream", "is_same"), [(torch.float16, True), (torch.float32, False)])
def test_without_dropout_one_tensor_serves_twice_where_types_agree(
    stream: torch.dtype, is_same: bool
) -> None:
    (by_x, by_change), _, (_, change, _) = gradients(build(stream=stream))
    assert (by_change is by_x) == is_same
    assert by_change is not None
    assert change is not None
    close(by_change, change, torch.float16)


def test_without_a_change_there_is_no_gradient_of_it() -> None:
    (by_x, by_change), _, (x, _, _) = gradients(build(has_change=False))
    assert by_change is None
    close(by_x, x, torch.float32)


def test_rows_of_zeros_stay_finite() -> None:
    case = build()
    case.x.zero_()
    assert case.change is not None
    case.change[:3] = -case.change_bias  # type: ignore[operator]
    (by_x, by_change), vectors, _ = gradients(case)
    assert by_change is not None
    for tensor in (case.forward().normed, by_x, by_change, *vectors):
        assert bool(tensor.isfinite().all())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_norm_can_be_had_in_fp8_besides(kind: norm.Kind, width: int) -> None:
    x = torch.randn(7, width, device=DEVICE) * torch.logspace(-2, 2, width, device=DEVICE)
    room = empty_quarter(x)
    normed = norm.forward(
        x,
        None,
        change_bias_D=None,
        weight_D=torch.randn(width, device=DEVICE),
        bias_D=torch.randn(width, device=DEVICE),
        kind=kind,
        epsilon=EPSILON,
        share=0.0,
        seed=seed(),
        site=SITE,
        dtype=torch.float32,
        quarter=room,
    ).normed
    quarter = finished(room)
    largest = normed.abs().amax(1, keepdim=True)
    torch.testing.assert_close(quarter.scales, largest / 448)
    bound = torch.maximum(normed.abs() * 2**-4, largest * 2**-10 / 448) * (1 + 1e-4)
    assert ((quarter.values.float() * quarter.scales - normed).abs() <= bound).all()
