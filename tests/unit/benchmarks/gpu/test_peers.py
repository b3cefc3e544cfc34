"""The others' models learn what they should: padding says nothing, and what is to come is not seen."""

from dataclasses import replace

import pytest
import torch
from benchmarks.gpu.padded import Rectangles
from benchmarks.gpu.peers import TorchTransformer
from torch import Tensor
from torch.nn import functional

from tandem.config import ModelSection

PAD = 3
SECTION = ModelSection(width=16, heads=2, encoder_layers=2, decoder_layers=2, feed_forward=32, dropout=0.1)


def rectangles(source: Tensor, decoder_input: Tensor, labels: Tensor) -> Rectangles:
    return Rectangles(
        source=source,
        is_padding=source == PAD,
        decoder_input=decoder_input,
        labels=labels,
        target_tokens=int((labels != PAD).sum()),
        source_tokens=int((source != PAD).sum()),
    )


@pytest.fixture
def batch() -> Rectangles:
    ids = torch.randint(4, 30, (3, 2, 6))
    ids[:, 1, 4:] = PAD
    return rectangles(*ids)


@pytest.fixture
def model() -> TorchTransformer:
    return TorchTransformer(SECTION, vocabulary=30, pad=PAD)


def test_more_padding_changes_no_loss(model: TorchTransformer, batch: Rectangles) -> None:
    model.eval()
    sides = (
        functional.pad(side, (0, 3), value=PAD) for side in (batch.source, batch.decoder_input, batch.labels)
    )
    torch.testing.assert_close(model(rectangles(*sides)), model(batch))


def test_what_is_to_come_is_not_seen(model: TorchTransformer, batch: Rectangles) -> None:
    model.eval()
    early = batch.labels.clone()
    early[:, 2:] = PAD
    other = batch.decoder_input.clone()
    other[:, 2:] = (other[:, 2:] + 5) % 26 + 4
    seen = replace(batch, labels=early)
    torch.testing.assert_close(model(replace(seen, decoder_input=other)), model(seen))
    assert not torch.allclose(model(replace(batch, decoder_input=other)), model(batch))


def test_dropout_is_where_ours_is(model: TorchTransformer) -> None:
    rates = [each.p for each in model.modules() if isinstance(each, torch.nn.Dropout)]
    # One on embeddings, which both sides share, two a layer that reads and three a layer that writes.
    assert rates == [SECTION.dropout] * (1 + 2 * 2 + 2 * 3)
    attentions = [each for each in model.modules() if isinstance(each, torch.nn.MultiheadAttention)]
    assert [each.dropout for each in attentions] == [0.0] * 6


def test_it_learns(model: TorchTransformer, batch: Rectangles) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(batch)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.6 * losses[0]
