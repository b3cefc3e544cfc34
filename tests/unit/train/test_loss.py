"""The loss is PyTorch's cross-entropy, summed over real labels, whatever the pieces."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import tandem.train.loss
from tandem.train.loss import summed_loss, summed_nll

PAD = 2
VOCABULARY = 11


def numbers(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    states = torch.randn(*shape, 6, generator=generator, dtype=torch.float64)
    weight = torch.randn(VOCABULARY, 6, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, VOCABULARY, shape, generator=generator, dtype=torch.int32)
    return states.to(dtype).requires_grad_(), weight.to(dtype).requires_grad_(), labels


def reference(states: Tensor, weight: Tensor, labels: Tensor, *, smoothing: float) -> Tensor:
    logits = (states @ weight.T).reshape(-1, VOCABULARY)
    return functional.cross_entropy(
        logits, labels.reshape(-1).long(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )


@pytest.fixture
def pieces_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tandem.train.loss._PIECE_BYTES, "cpu", 3 * 4 * VOCABULARY)


@pytest.mark.usefixtures("pieces_of_three")
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (2, 5), (3, 7)])
def test_loss_and_gradients_are_those_of_cross_entropy(shape: tuple[int, ...], smoothing: float) -> None:
    states, weight, labels = numbers(shape)
    loss, nll = summed_loss(states, weight, labels, pad=PAD, smoothing=smoothing)
    expected = reference(states, weight, labels, smoothing=smoothing)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, reference(states, weight, labels, smoothing=0.0).detach())
    factor = torch.tensor(0.37, dtype=torch.float64)
    actual_gradients = torch.autograd.grad(loss * factor, (states, weight))
    expected_gradients = torch.autograd.grad(expected * factor, (states, weight))
    torch.testing.assert_close(actual_gradients, expected_gradients)


def test_a_piece_more_or_less_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    states, weight, labels = numbers((4, 8))
    sums = []
    for tokens in (1, 5, 31, 32, 33):
        monkeypatch.setitem(tandem.train.loss._PIECE_BYTES, "cpu", tokens * 4 * VOCABULARY)
        sums.append(summed_loss(states, weight, labels, pad=PAD, smoothing=0.1)[0].detach())
    torch.testing.assert_close(torch.stack(sums), sums[0].expand(5))


def test_a_vocabulary_beyond_the_size_of_a_piece_still_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    states, weight, labels = numbers((3,))
    monkeypatch.setitem(tandem.train.loss._PIECE_BYTES, "cpu", 1)
    loss, _ = summed_loss(states, weight, labels, pad=PAD, smoothing=0.1)
    torch.testing.assert_close(loss, reference(states, weight, labels, smoothing=0.1))


@pytest.mark.parametrize("shape", [(0, 1), (3, 2)], ids=["no rows", "only padding"])
def test_nothing_to_learn_from_is_a_zero_loss_with_zero_gradients(shape: tuple[int, ...]) -> None:
    states, weight, labels = numbers(shape)
    loss, nll = summed_loss(states, weight, labels.fill_(PAD), pad=PAD, smoothing=0.1)
    assert loss == 0
    assert nll == 0
    gradients = torch.autograd.grad(loss, (states, weight))
    assert [gradient.shape for gradient in gradients] == [states.shape, weight.shape]
    assert not any(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_stays_close_to_fp32(dtype: torch.dtype) -> None:
    states, weight, labels = numbers((5, 9), torch.float32)
    expected = reference(states, weight, labels, smoothing=0.1)
    with torch.autocast("cpu", dtype):
        loss, _ = summed_loss(states, weight, labels, pad=PAD, smoothing=0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=0.01, atol=0.0)
    gradients = torch.autograd.grad(loss, (states, weight))
    for actual, wanted in zip(gradients, torch.autograd.grad(expected, (states, weight)), strict=True):
        assert actual.dtype == torch.float32
        assert (actual - wanted).norm() < 0.02 * wanted.norm()


def test_a_large_loss_scale_leaves_fp16_gradients_finite() -> None:
    states, weight, labels = numbers((5, 9), torch.float32)
    with torch.autocast("cpu", torch.float16):
        loss, _ = summed_loss(states, weight, labels, pad=PAD, smoothing=0.1)
    scaled = torch.autograd.grad(loss * 2.0**24, (states, weight))
    expected = torch.autograd.grad(reference(states, weight, labels, smoothing=0.1), (states, weight))
    for actual, wanted in zip(scaled, expected, strict=True):
        assert (actual / 2.0**24 - wanted).norm() < 0.01 * wanted.norm()


def test_a_label_that_is_all_but_impossible_has_a_finite_loss() -> None:
    states = torch.tensor([[300.0]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0], [0.0]], requires_grad=True)
    loss, nll = summed_loss(states, weight, torch.tensor([1]), pad=PAD, smoothing=0.0)
    assert loss.item() == nll.item() == 600.0


def test_labels_that_are_marked_count_as_little_as_those_that_are_dropped() -> None:
    states, weight, labels = numbers((21,))
    marked = labels.long().where(labels != PAD, -1)
    assert 0 < int((marked < 0).sum()) < 21
    loss, _ = tandem.train.loss._SummedLoss.apply(states, weight, marked, 0.1)  # type: ignore[no-untyped-call]
    expected = reference(states, weight, labels, smoothing=0.1)
    torch.testing.assert_close(loss, expected)
    gradients = torch.autograd.grad(loss, (states, weight))
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, (states, weight)))


def test_evaluation_makes_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tandem.train.loss._Sums, "first_gradients")
    states, weight, labels = numbers((3,))
    assert summed_nll(states, weight, labels, pad=PAD).isfinite()
    with pytest.raises(AttributeError):
        summed_loss(states, weight, labels, pad=PAD, smoothing=0.0)


def test_evaluation_gives_the_likelihood_alone_and_no_gradient() -> None:
    states, weight, labels = numbers((3, 7))
    nll = summed_nll(states, weight, labels, pad=PAD)
    torch.testing.assert_close(nll, reference(states, weight, labels, smoothing=0.0).detach())
    assert not nll.requires_grad


def test_gradients_that_were_used_up_are_not_used_again() -> None:
    states, weight, labels = numbers((3,))
    loss, _ = summed_loss(states, weight, labels, pad=PAD, smoothing=0.1)
    torch.autograd.grad(loss, (states, weight), retain_graph=True)
    with pytest.raises(RuntimeError, match="used up"):
        torch.autograd.grad(loss, (states, weight))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_padding_is_left_out_on_a_gpu_too(dtype: torch.dtype) -> None:
    states, weight, labels = (each.detach().cuda() for each in numbers((5, 9), torch.float32))
    states.requires_grad_()
    weight.requires_grad_()
    expected = reference(states, weight, labels, smoothing=0.1)
    with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
        loss, _ = summed_loss(states, weight, labels, pad=PAD, smoothing=0.1)
    torch.testing.assert_close(loss, expected, rtol=0.01, atol=0.0)
    gradients = torch.autograd.grad(loss, (states, weight))
    for actual, wanted in zip(gradients, torch.autograd.grad(expected, (states, weight)), strict=True):
        assert (actual - wanted).norm() < 0.02 * wanted.norm()
