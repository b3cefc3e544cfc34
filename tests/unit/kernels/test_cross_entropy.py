"""Logits become the gradient of PyTorch's cross-entropy, and the rows' losses are its losses."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tandem.kernels.cross_entropy import LARGEST_VOCABULARY, cross_entropy_

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The interpreter cuts bfloat16 off instead of rounding it.
HALVES = [torch.float16, torch.bfloat16] if DEVICE == "cuda" else [torch.float16]
PAD = 1
ROWS = 13
FACTOR = 0.37


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    gradient: Tensor
    losses: Tensor
    nlls: Tensor
    hits: Tensor


def numbers(vocabulary: int, dtype: torch.dtype, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(vocabulary + seed)
    logits = torch.randn(ROWS, vocabulary, generator=generator) * 3
    labels = torch.randint(0, vocabulary, (ROWS,), generator=generator, dtype=torch.int32)
    labels[labels == PAD] = 2
    # The label is the highest in some rows, padding in others; one is the first column, one the last.
    labels[0], labels[1], labels[3], labels[7] = 0, vocabulary - 1, PAD, PAD
    labels[4:6] = logits[4:6].argmax(1)
    return logits.to(DEVICE, dtype), labels.to(DEVICE)


def outcome(logits: Tensor, labels: Tensor, *, smoothing: float, factor: float = FACTOR) -> Outcome:
    gradient = logits.clone()
    counts = [torch.full((len(labels),), torch.nan, device=DEVICE) for _ in range(3)]
    cross_entropy_(
        gradient,
        labels,
        pad=PAD,
        smoothing=smoothing,
        factor=torch.tensor(factor, device=DEVICE),
        losses_B=counts[0],
        nlls_B=counts[1],
        hits_B=counts[2],
    )
    return Outcome(gradient=gradient, losses=counts[0], nlls=counts[1], hits=counts[2])


def reference(logits: Tensor, labels: Tensor, *, smoothing: float) -> Outcome:
    """In fp64."""
    wide = logits.double().requires_grad_()
    losses, nlls = (
        functional.cross_entropy(
            wide, labels.long(), ignore_index=PAD, label_smoothing=share, reduction="none"
        )
        for share in (smoothing, 0.0)
    )
    (gradient,) = torch.autograd.grad(losses.sum() * FACTOR, wide)
    best = logits.max(1).values == logits.gather(1, labels.long()[:, None]).squeeze(1)
    return Outcome(
        gradient=gradient,
        losses=losses.detach(),
        nlls=nlls.detach(),
        hits=(best & (labels != PAD)).double(),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("vocabulary", [5, 64, 200, 333])
def test_gradient_losses_and_hits_are_those_of_cross_entropy(vocabulary: int, smoothing: float) -> None:
    logits, labels = numbers(vocabulary, torch.float32)
    actual = outcome(logits, labels, smoothing=smoothing)
    expected = reference(logits, labels, smoothing=smoothing)
    torch.testing.assert_close(actual.gradient.double(), expected.gradient, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(actual.losses.double(), expected.losses, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(actual.nlls.double(), expected.nlls, rtol=1e-5, atol=1e-6)
    assert actual.hits.tolist() == expected.hits.tolist()
    assert 0 < actual.hits.sum() < ROWS - 2


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("vocabulary", [200, 333])
def test_halves_are_rounded_once(dtype: torch.dtype, vocabulary: int) -> None:
    logits, labels = numbers(vocabulary, dtype)
    actual = outcome(logits, labels, smoothing=0.1)
    expected = reference(logits, labels, smoothing=0.1)
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(actual.gradient.double(), expected.gradient, rtol=0.51 * rounding, atol=2e-7)
    torch.testing.assert_close(actual.losses.double(), expected.losses, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(actual.nlls.double(), expected.nlls, rtol=1e-5, atol=1e-6)
    assert actual.hits.tolist() == expected.hits.tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_rows_of_padding_become_exact_zeros_whatever_they_hold(dtype: torch.dtype) -> None:
    logits, labels = numbers(64, dtype)
    padded = labels == PAD
    logits[3] = torch.inf
    logits[7] = torch.nan
    actual = outcome(logits, labels, smoothing=0.1)
    assert int(padded.sum()) == 2
    for counted in (actual.gradient, actual.losses, actual.nlls, actual.hits):
        assert not counted[padded].any()
        assert counted[~padded].isfinite().all()


def test_a_label_that_is_all_but_impossible_has_a_finite_loss() -> None:
    logits = torch.tensor([[300.0, 0.0, -300.0]], device=DEVICE)
    actual = outcome(logits, torch.tensor([2], device=DEVICE), smoothing=0.0)
    assert actual.losses.item() == actual.nlls.item() == pytest.approx(600.0, rel=1e-6)
    assert actual.gradient.tolist()[0] == pytest.approx([FACTOR, 0.0, -FACTOR], rel=1e-5)


def test_a_row_of_logits_far_below_zero_is_like_one_around_it() -> None:
    logits, labels = numbers(100, torch.float32)
    expected = reference(logits - 1000.0, labels, smoothing=0.1)
    actual = outcome(logits - 1000.0, labels, smoothing=0.1)
    torch.testing.assert_close(actual.losses.double(), expected.losses, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(actual.gradient.double(), expected.gradient, rtol=1e-3, atol=1e-6)


def test_a_label_that_shares_the_first_place_is_a_hit() -> None:
    logits = torch.tensor([[2.0, 0.0, 2.0], [2.0, 0.0, 2.0], [2.0, 0.0, 1.0]], device=DEVICE)
    actual = outcome(logits, torch.tensor([0, 2, 2], device=DEVICE), smoothing=0.1)
    assert actual.hits.tolist() == [1.0, 1.0, 0.0]


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # the interpreter's numpy
def test_logits_that_are_not_finite_show_in_loss_and_gradient() -> None:
    logits, labels = numbers(64, torch.float32)
    logits[2, 9] = torch.inf
    actual = outcome(logits, labels, smoothing=0.1)
    assert not actual.losses[2].isfinite()
    assert not actual.gradient[2].isfinite().all()
    assert actual.gradient[[0, 1, 4]].isfinite().all()


def test_the_factor_scales_gradients_and_nothing_else() -> None:
    logits, labels = numbers(100, torch.float32)
    once, scaled = (outcome(logits, labels, smoothing=0.1, factor=each) for each in (1.0, 1024.0))
    torch.testing.assert_close(scaled.gradient, once.gradient * 1024.0, rtol=1e-6, atol=1e-6)
    assert torch.equal(scaled.losses, once.losses)


def test_labels_may_be_of_either_width() -> None:
    logits, labels = numbers(100, torch.float32)
    narrow, wide = (outcome(logits, each, smoothing=0.1) for each in (labels, labels.long()))
    assert torch.equal(narrow.gradient, wide.gradient)
    assert torch.equal(narrow.losses, wide.losses)


def test_the_largest_vocabulary_is_said() -> None:
    logits = torch.zeros(1, LARGEST_VOCABULARY + 1, device=DEVICE)
    with pytest.raises(ValueError, match=str(LARGEST_VOCABULARY)):
        outcome(logits, torch.zeros(1, dtype=torch.int32, device=DEVICE), smoothing=0.1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("vocabulary", [16_000, 32_000, 32_001, 37_000, LARGEST_VOCABULARY])
def test_real_vocabularies_give_the_same_on_a_gpu(vocabulary: int, dtype: torch.dtype) -> None:
    logits, labels = numbers(vocabulary, dtype)
    actual, again = (outcome(logits, labels, smoothing=0.1) for _ in range(2))
    expected = reference(logits, labels, smoothing=0.1)
    torch.testing.assert_close(
        actual.gradient.double(), expected.gradient, rtol=torch.finfo(dtype).eps, atol=1e-7
    )
    torch.testing.assert_close(actual.losses.double(), expected.losses, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(actual.nlls.double(), expected.nlls, rtol=1e-5, atol=1e-5)
    assert actual.hits.tolist() == expected.hits.tolist()
    assert torch.equal(actual.gradient, again.gradient)
    assert torch.equal(actual.losses, again.losses)
