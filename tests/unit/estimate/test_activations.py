"""What is said to be kept for backward is what autograd keeps."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.learning import SPECIAL, VOCABULARY, pack
from torch import Tensor

from tandem.config import ModelSection
from tandem.data.batches.batch import Batch
from tandem.estimate.activations import Kept, Way, kept_bytes, working_bytes
from tandem.model import Transformer, build_model
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import SoloWorld
from tandem.telemetry.clock import PhaseClock
from tandem.train.fused import FusedPass
from tandem.train.loss import summed_loss
from tandem.train.tokens import to_tokens

TOKENS = 64
WIDTH = 64
VARIANTS: list[dict[str, Any]] = [
    {},
    {"dropout": 0.1},
    {"norm_place": "post"},
    {"encoder_layers": 2},
    {"decoder_layers": 2},
    {"activation_dropout": 0.1},
    {"activation": "gelu"},
    {"norm": "rms"},
    {"activation": "silu", "gated": True},
    {"positions": "rotary"},
]
# On a CPU, RMS norm is made of many steps that keep more than its one kernel on a GPU does.
PLAIN_VARIANTS = [each for each in VARIANTS if not {"dropout", "activation_dropout", "norm"} & set(each)]
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def section_of(variant: dict[str, Any]) -> ModelSection:
    small: dict[str, Any] = {"width": WIDTH, "heads": 2, "feed_forward": 160, "dropout": 0.0}
    return ModelSection(**(small | {"encoder_layers": 1, "decoder_layers": 1} | variant))


def build(section: ModelSection) -> Transformer:
    sizes = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY}
    return build_model(section, **sizes, pad=SPECIAL.pad, seed=1)


def draw() -> Batch[Tensor]:
    dice = np.random.default_rng()
    lengths = [(dice.integers(3, 14), dice.integers(3, 14)) for _ in range(4)]
    pairs = [tuple(dice.integers(4, VOCABULARY, pieces).tolist() for pieces in pair) for pair in lengths]
    return pack([(source, target) for source, target in pairs], capacity=TOKENS)


class Saved:
    """Memory that autograd keeps, but for parameters: each piece counted once."""

    def __init__(self, model: Transformer) -> None:
        self._own = {each.untyped_storage().data_ptr() for each in model.parameters()}
        # Held, so that no address is given out twice.
        self._held: dict[int, Tensor] = {}

    def __call__(self, tensor: Tensor) -> Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in self._own and tensor.is_floating_point():
            self._held[place] = tensor
        return tensor

    @property
    def bytes(self) -> int:
        return sum(tensor.untyped_storage().nbytes() for tensor in self._held.values())


def saved_by_fused(section: ModelSection) -> int:
    model = build(section).to(DEVICE)
    buckets = GradientBuckets(list(model.parameters()), SoloWorld(device=DEVICE), slots=1)
    halves: dict[Tensor, Tensor] = {each: each.detach().half() for each in model.parameters()}
    learn = FusedPass(model, halves=halves, buckets=buckets, smoothing=0.1, clock=PhaseClock(DEVICE))
    batch = draw().map(lambda tensor: tensor.to(DEVICE))
    seed = torch.tensor([1, 2], dtype=torch.int32, device=DEVICE)
    saved = Saved(model)
    with torch.autograd.graph.saved_tensors_hooks(saved, lambda tensor: tensor):
        learn.forward(batch, seed=seed, factor=torch.ones((), device=DEVICE))
    return saved.bytes


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
def test_fused_steps_keep_what_is_counted_to_the_byte(variant: dict[str, Any]) -> None:
    section = section_of(variant)
    kept = kept_bytes(section, "fused")
    # The states are there while the loss is computed, though backward needs no more than their gradient.
    states = 2 * WIDTH
    assert saved_by_fused(section) == TOKENS * (kept.source + kept.target - states)


@pytest.mark.parametrize("variant", PLAIN_VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
def test_plain_steps_keep_about_what_is_counted(variant: dict[str, Any]) -> None:
    section = section_of(variant)
    model, batch = build(section), draw()
    saved = Saved(model)
    with torch.autograd.graph.saved_tensors_hooks(saved, lambda tensor: tensor):
        states = model(*to_tokens(batch))
        summed_loss(states, model.output_weight, batch.labels, pad=SPECIAL.pad, smoothing=0.1)
    kept = kept_bytes(section, "full")
    # Of the states, what the loss makes of them, and the target's waves, autograd knows nothing.
    unknown = 4 * WIDTH * (3 + (section.positions == "sinusoidal"))
    assert saved.bytes == pytest.approx(TOKENS * (kept.source + kept.target - unknown), rel=0.12)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
def test_plain_steps_keep_more_than_fused_ones_and_full_precision_more_than_half(
    variant: dict[str, Any],
) -> None:
    section = section_of(variant)
    ways: tuple[Way, ...] = ("fused", "half", "full")
    kept = [kept_bytes(section, way) for way in ways]
    assert kept == sorted(kept, key=lambda each: (each.source, each.target))
    assert len({each.target for each in kept}) == 3
    assert working_bytes(section, "fused") <= working_bytes(section, "full")


def test_a_mask_costs_a_byte_a_number_where_it_is_kept() -> None:
    without, with_dropout = (kept_bytes(section_of({"dropout": share}), "full") for share in (0.0, 0.1))
    # Embeddings, and each way around a sublayer: two of the encoder, three of the decoder.
    assert with_dropout == Kept(source=without.source + 3 * WIDTH, target=without.target + 4 * WIDTH)
