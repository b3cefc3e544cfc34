"""The fused loss is the plain one, whatever the chunks: sums, and gradients of states and weight."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import tandem.train.fused_loss
from tandem.train.fused_loss import fused_loss
from tandem.train.loss import summed_loss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALVES = [torch.float16, torch.bfloat16] if DEVICE == "cuda" else [torch.float16]
PAD = 2
VOCABULARY = 72
WIDTH = 16
ROWS = 21
FACTOR = 0.37


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    loss: Tensor
    nll: Tensor
    by_states: Tensor
    by_weight: Tensor


def numbers(dtype: torch.dtype, *, rows: int = ROWS) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows)
    states = torch.randn(rows, WIDTH, generator=generator)
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator) * 0.5
    labels = torch.randint(0, VOCABULARY, (rows,), generator=generator, dtype=torch.int32)
    labels[-max(rows // 4, 1) :] = PAD
    return states.to(DEVICE, dtype), weight.to(DEVICE, dtype), labels.to(DEVICE)


def fused(states: Tensor, weight: Tensor, labels: Tensor, *, smoothing: float = 0.1) -> Outcome:
    """The gradient of the weight begins at 1, to which its own is added."""
    leaf = states.clone().requires_grad_()
    by_weight = torch.ones(weight.shape, device=DEVICE)
    loss, nll, _ = fused_loss(
        leaf,
        weight,
        labels,
        pad=PAD,
        smoothing=smoothing,
        factor=torch.tensor(FACTOR, device=DEVICE),
        weight_grad_VD=by_weight,
    )
    (by_states,) = torch.autograd.grad(loss, leaf)
    return Outcome(loss=loss.detach(), nll=nll, by_states=by_states, by_weight=by_weight - 1)


def plain(states: Tensor, weight: Tensor, labels: Tensor, *, smoothing: float = 0.1) -> Outcome:
    """In fp64."""
    leaves = states.double().requires_grad_(), weight.double().requires_grad_()
    loss, nll = summed_loss(leaves[0], leaves[1], labels, pad=PAD, smoothing=smoothing)
    by_states, by_weight = torch.autograd.grad(loss * FACTOR, leaves)
    return Outcome(loss=loss.detach(), nll=nll, by_states=by_states, by_weight=by_weight)


@pytest.fixture(params=[1, 4, 7, 1000])
def chunk_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    rows: int = request.param
    monkeypatch.setitem(tandem.train.fused_loss._CHUNK_BYTES, DEVICE, rows * 4 * VOCABULARY)
    return rows


@pytest.mark.usefixtures("chunk_rows")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_sums_and_gradients_are_those_of_the_plain_loss(smoothing: float) -> None:
    inputs = numbers(torch.float32)
    actual, expected = (make(*inputs, smoothing=smoothing) for make in (fused, plain))
    for name in Outcome.__dataclass_fields__:
        torch.testing.assert_close(
            getattr(actual, name).double(), getattr(expected, name), rtol=1e-5, atol=2e-6, msg=name
        )


@pytest.mark.usefixtures("chunk_rows")
@pytest.mark.parametrize("dtype", HALVES)
def test_halves_stay_close_to_the_plain_loss(dtype: torch.dtype) -> None:
    inputs = numbers(dtype)
    actual, expected = fused(*inputs), plain(*inputs)
    rounding = torch.finfo(dtype).eps
    assert actual.by_states.dtype == dtype
    assert actual.by_weight.dtype == actual.loss.dtype == actual.nll.dtype == torch.float32
    for name in Outcome.__dataclass_fields__:
        wanted = getattr(expected, name)
        assert (getattr(actual, name).double() - wanted).norm() < 2 * rounding * wanted.norm(), name


def test_the_label_that_comes_first_is_counted_without_padding() -> None:
    states, weight, labels = numbers(torch.float32)
    best = (states @ weight.T).argmax(1)
    labels[:3] = best[:3].int()
    wanted = int(((best == labels) & (labels != PAD)).sum())
    loss, nll, hits = fused_loss(
        states,
        weight,
        labels,
        pad=PAD,
        smoothing=0.0,
        factor=torch.ones((), device=DEVICE),
        weight_grad_VD=torch.zeros(weight.shape, device=DEVICE),
    )
    assert hits.item() == wanted >= 3
    assert loss.item() == nll.item()
    assert loss.shape == nll.shape == hits.shape == ()


def test_padding_has_no_part_in_any_sum() -> None:
    states, weight, labels = numbers(torch.float32)
    real = labels != PAD
    whole, part = fused(states, weight, labels), fused(states[real], weight, labels[real])
    torch.testing.assert_close(whole.loss, part.loss)
    torch.testing.assert_close(whole.by_weight, part.by_weight)
    torch.testing.assert_close(whole.by_states[real], part.by_states)
    assert not whole.by_states[~real].any()


def test_only_padding_is_a_zero_loss_with_zero_gradients() -> None:
    states, weight, labels = numbers(torch.float32)
    actual = fused(states, weight, labels.fill_(PAD))
    for name in Outcome.__dataclass_fields__:
        assert not getattr(actual, name).any(), name


def test_the_gradient_goes_on_through_what_made_the_states() -> None:
    states, weight, labels = numbers(torch.float32)
    leaf = states.clone().requires_grad_()
    loss, nll, hits = fused_loss(
        leaf * 3,
        weight.requires_grad_(),
        labels,
        pad=PAD,
        smoothing=0.1,
        factor=torch.ones((), device=DEVICE),
        weight_grad_VD=torch.zeros(weight.shape, device=DEVICE),
    )
    assert loss.requires_grad
    assert not nll.requires_grad
    assert not hits.requires_grad
    loss.backward()  # type: ignore[no-untyped-call]
    assert weight.grad is None
    expected = plain(states * 3, weight.detach(), labels).by_states / FACTOR * 3
    assert leaf.grad is not None
    torch.testing.assert_close(leaf.grad.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "most", "expected"),
    [
        (32_768, 16_777, [16_384, 16_384]),
        (24_576, 16_777, [12_288, 12_288]),
        (32_000, 16_777, [16_000, 16_000]),
        (1000, 400, [384, 384, 232]),
        (100, 400, [100]),
        (300, 100, [100, 100, 100]),
        (301, 100, [76, 76, 76, 73]),
        (3, 0, [1, 1, 1]),
    ],
)
def test_chunks_are_even_and_of_whole_tiles_where_they_can_be(
    rows: int, most: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    row_bytes = 64
    monkeypatch.setitem(tandem.train.fused_loss._CHUNK_BYTES, "cpu", most * row_bytes)
    chunk = tandem.train.fused_loss._chunk_rows(rows, row_bytes, "cpu")
    slices = list(tandem.train.fused_loss._cut(rows, chunk))
    assert [each.stop - each.start for each in slices] == expected
    assert [each.start for each in slices] == [0, *(each.stop for each in slices[:-1])]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_step_is_the_same_to_the_bit_each_time() -> None:
    inputs = numbers(torch.bfloat16, rows=512)
    actual, again = (fused(*inputs) for _ in range(2))
    for name in Outcome.__dataclass_fields__:
        assert torch.equal(getattr(actual, name), getattr(again, name)), name
