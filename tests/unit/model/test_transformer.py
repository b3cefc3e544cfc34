"""A model says the same whatever stands beside a sentence, and however it lies in the batch."""

from typing import Any

import pytest
import torch
from tests.unit.model.sentences import PAD, VARIANTS, packed, padded, sentences, small_model
from torch import Tensor

from tandem.model import PackedTokens, PaddedTokens, Tokens, Transformer
from tandem.train.loss import summed_loss

SOURCE_LENGTHS = [5, 1, 7, 3]
TARGET_LENGTHS = [2, 6, 4, 6]


def taught(weight: Tensor) -> Tensor:
    assert weight.grad is not None
    return weight.grad.clone()


def labels_within_sentences(rows: list[Tensor]) -> list[Tensor]:
    return [row.flip(0) for row in rows]


def loss_and_gradients(
    model: Transformer, source: Tokens, target: Tokens, labels: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    loss, _ = summed_loss(model(source, target), model.output_weight, labels, pad=PAD, smoothing=0.1)
    torch.autograd.backward(loss)
    return loss.detach(), {name: taught(weight) for name, weight in model.named_parameters()}


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("source_capacity", [16, 20], ids=["no source tail", "source tail"])
def test_packed_gives_the_losses_and_gradients_of_padded(
    settings: dict[str, Any], source_capacity: int
) -> None:
    model = small_model(**settings)
    source, target = sentences(SOURCE_LENGTHS), sentences(TARGET_LENGTHS, seed=2)
    labels = labels_within_sentences(target)
    expected, expected_gradients = loss_and_gradients(
        model, padded(source), padded(target), padded(labels).ids
    )
    actual, gradients = loss_and_gradients(
        model,
        packed(source, capacity=source_capacity, most=6),
        packed(target, capacity=23, most=6),
        packed(labels, capacity=23, most=6).ids,
    )
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_neighbours_and_padding_change_nothing(settings: dict[str, Any]) -> None:
    model = small_model(**settings)
    source, target = sentences(SOURCE_LENGTHS), sentences(TARGET_LENGTHS, seed=2)
    together = model(padded(source, width=11), padded(target, width=9))
    for place, (alone_source, alone_target) in enumerate(zip(source, target, strict=True)):
        alone = model(padded([alone_source]), padded([alone_target]))
        torch.testing.assert_close(together[place, : len(alone_target)], alone[0], rtol=1e-4, atol=1e-5)


def test_what_stands_in_the_padding_changes_nothing() -> None:
    model = small_model()
    source, target = sentences(SOURCE_LENGTHS), padded(sentences(TARGET_LENGTHS, seed=2))
    usual = model(padded(source), target)
    strange = model(padded(source, fill=7), target)
    assert torch.equal(usual, strange)


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_later_tokens_change_only_what_comes_after(settings: dict[str, Any], layout: str) -> None:
    model = small_model(**settings)
    source, target = sentences([4]), sentences([6], seed=2)
    other = [target[0].clone()]
    other[0][3] = other[0][3] % 30 + 1

    def states(rows: list[Tensor]) -> Tensor:
        if layout == "padded":
            result: Tensor = model(padded(source), padded(rows))[0]
        else:
            result = model(packed(source, capacity=5, most=2), packed(rows, capacity=7, most=2))[:6]
        return result

    before, after = states(target), states(other)
    assert torch.equal(before[:3], after[:3])
    assert (before[3:] != after[3:]).any(dim=-1).all()


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_order_matters(settings: dict[str, Any]) -> None:
    model = small_model(**settings)
    source, target = sentences([4]), padded(sentences([3], seed=2))
    turned = [source[0].flip(0)]
    assert not torch.allclose(model(padded(source), target), model(padded(turned), target), atol=1e-3)


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_a_batch_without_pairs_teaches_zero(settings: dict[str, Any]) -> None:
    model = small_model(**settings)
    for empty in (padded([]), packed([], capacity=8, most=3)):
        loss, gradients = loss_and_gradients(model, empty, empty, empty.ids)
        assert loss == 0
        assert all(not gradient.any() for gradient in gradients.values())


def test_the_source_is_read() -> None:
    model = small_model()
    target = padded(sentences([3], seed=2))
    assert not torch.equal(
        model(padded(sentences([4])), target), model(padded(sentences([4], seed=3)), target)
    )


def test_both_sides_must_lie_in_the_same_layout() -> None:
    rows = sentences([3])
    with pytest.raises(TypeError, match="same layout"):
        small_model()(padded(rows), packed(rows, capacity=4, most=2))


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
@pytest.mark.parametrize("layout", ["padded", "packed"])
def test_dropout_follows_the_seed_and_rests_outside_training(kind: str, layout: str) -> None:
    settings: dict[str, Any] = {kind: 0.4}
    model = small_model(**settings)
    rows = sentences([4, 3])
    tokens = padded(rows) if layout == "padded" else packed(rows, capacity=8, most=2)

    def states(seed: int) -> Tensor:
        torch.manual_seed(seed)
        result: Tensor = model(tokens, tokens)
        return result

    assert torch.equal(states(1), states(1))
    assert not torch.equal(states(1), states(2))
    model.eval()
    assert torch.equal(states(1), states(2))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 0.01), (torch.bfloat16, 0.15)])
@pytest.mark.parametrize("longest", [None, 7])
def test_packed_on_a_gpu_gives_the_losses_and_gradients_of_padded_in_fp32(
    settings: dict[str, Any], dtype: torch.dtype, tolerance: float, longest: int | None
) -> None:
    model = small_model(width=64, **settings).cuda()
    source, target = sentences(SOURCE_LENGTHS), sentences(TARGET_LENGTHS, seed=2)
    labels = labels_within_sentences(target)
    expected, expected_gradients = loss_and_gradients(
        model, on_gpu(padded(source)), on_gpu(padded(target)), padded(labels).ids.cuda()
    )
    for capacity in (16, 24):
        with torch.autocast("cuda", dtype):
            loss, gradients = loss_and_gradients(
                model,
                on_gpu(packed(source, capacity=capacity, most=6), longest=longest),
                on_gpu(packed(target, capacity=64, most=6), longest=longest),
                packed(labels, capacity=64, most=6).ids.cuda(),
            )
        torch.testing.assert_close(loss, expected, rtol=0.01, atol=0.0)
        for name, gradient in gradients.items():
            distance = (gradient - expected_gradients[name]).norm()
            assert distance <= tolerance * expected_gradients[name].norm() + 1e-4, name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_batch_without_pairs_teaches_zero_on_a_gpu(dtype: torch.dtype) -> None:
    model = small_model(width=64).cuda()
    for tokens in (padded([]), packed([], capacity=8, most=3)):
        empty = on_gpu(tokens)
        with torch.autocast("cuda", torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss, gradients = loss_and_gradients(model, empty, empty, empty.ids)
        assert loss == 0
        assert all(not gradient.any() for gradient in gradients.values())


def on_gpu(tokens: Tokens, *, longest: int | None = None) -> Tokens:
    if isinstance(tokens, PaddedTokens):
        return PaddedTokens(ids=tokens.ids.cuda(), lengths=tokens.lengths.cuda())
    return PackedTokens(
        ids=tokens.ids.cuda(), positions=tokens.positions.cuda(), bounds=tokens.bounds.cuda(), longest=longest
    )
