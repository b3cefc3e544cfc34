"""First weights follow the seed alone, and there are as many as the presets promise."""

import math

import pytest
import torch
from tests.unit.model.sentences import PAD, small_model

from tandem.config import ModelSection
from tandem.errors import TandemError
from tandem.model import Transformer, build_model, parameter_count


def sized(preset: str, *, vocabulary: int = 32_768) -> Transformer:
    with torch.device("meta"):
        return Transformer(
            ModelSection.model_validate({"preset": preset}),
            source_vocabulary=vocabulary,
            target_vocabulary=vocabulary,
            pad=PAD,
        )


def test_the_seed_decides_every_weight() -> None:
    first, again, other = (small_model(seed=seed, tied="none").state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    drawn = {name for name, weight in first.items() if weight.dim() == 2}
    assert all(not torch.equal(first[name], other[name]) for name in drawn)


def test_the_global_random_state_is_neither_read_nor_changed() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = small_model().state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    again = small_model().state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_base_has_the_weights_of_the_paper() -> None:
    # OpenSeq2Seq's base of the same vocabulary has 60,880,896: its attention has no biases, of which each of the
    # 6 + 12 attention blocks has 4 times 512 here.
    assert parameter_count(sized("base")) == 60_880_896 + 18 * 4 * 512


@pytest.mark.parametrize(
    ("preset", "width", "inner", "layers"),
    [("tiny", 128, 256, 2), ("small", 512, 1024, 6), ("big", 1024, 4096, 6)],
)
def test_presets_have_their_size(preset: str, width: int, inner: int, layers: int) -> None:
    attention, feed_forward, norm = 4 * width * (width + 1), 2 * width * inner + inner + width, 2 * width
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    expected = 1_000 * width + layers * (encoder + decoder) + 2 * norm
    assert parameter_count(sized(preset, vocabulary=1_000)) == expected


@pytest.mark.parametrize(("tied", "matrices"), [("all", 1), ("target", 2), ("none", 3)])
def test_tied_embeddings_are_held_once(tied: str, matrices: int) -> None:
    model = small_model(tied=tied)
    embeddings = [name for name, weight in model.state_dict().items() if weight.shape == (40, 16)]
    assert len(embeddings) == matrices
    assert (model.output_weight is model.target_embedding) == (tied != "none")


def test_a_state_dict_restores_the_model() -> None:
    model, other = small_model(seed=1), small_model(seed=2)
    other.load_state_dict(model.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_embeddings_start_small_with_padding_at_zero() -> None:
    model = build_model(
        ModelSection(width=64, heads=2, tied="none"),
        source_vocabulary=500,
        target_vocabulary=600,
        pad=3,
        seed=1,
    )
    for weight in (model.source_embedding, model.target_embedding, model.output_projection):
        assert weight is not None
        assert not weight[3].any()
        assert weight.std().item() == pytest.approx(64**-0.5, rel=0.05)


def test_fused_projections_start_as_the_separate_ones_they_stand_for() -> None:
    layer = small_model(width=64).decoder[0]
    bound = math.sqrt(6 / (64 + 64))
    query, key, value = layer.attention.query_key_value.weight.chunk(3)
    for separate in (query, key, value, *layer.cross_attention.key_value.weight.chunk(2)):
        assert separate.abs().max().item() == pytest.approx(bound / math.sqrt(2), rel=0.01)
    assert layer.attention.output.weight.abs().max().item() == pytest.approx(bound, rel=0.01)


def test_one_embedding_needs_one_vocabulary() -> None:
    with pytest.raises(TandemError, match="40 and 50 pieces: set model.tied"):
        build_model(
            ModelSection(width=16, heads=2), source_vocabulary=40, target_vocabulary=50, pad=PAD, seed=1
        )
