"""The fused pass against the plain one: on a CPU in Triton's interpreter and fp32, on a GPU in bf16 as well."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.learning import MODEL, SPECIAL, VOCABULARY, pack
from torch import Tensor

from tandem.config import ModelSection
from tandem.data.batches.batch import Batch, PackedBatch
from tandem.data.batches.block import in_one_block
from tandem.model import build_model
from tandem.parallel.buckets import GradientBuckets
from tandem.parallel.world import SoloWorld
from tandem.telemetry.clock import PhaseClock
from tandem.train.fused import FusedPass, GraphedPass
from tandem.train.passes import Pass, PlainPass
from tandem.train.precision import FP8_CAPABILITY, Precision

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
has_fp8 = pytest.mark.skipif(
    DEVICE.type == "cuda" and torch.cuda.get_device_capability() < FP8_CAPABILITY,
    reason="needs a CPU or a GPU with fp8",
)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm_place": "post"},
    {"norm": "rms", "activation": "silu", "gated": True, "positions": "rotary"},
    {"activation": "gelu", "tied": "none"},
    {"tied": "target", "encoder_layers": 2},
]


class Bench:
    """A model whose gradients any pass can fill."""

    def __init__(self, **model: Any) -> None:
        # Triton's products want 16 numbers a head at least.
        section = ModelSection(
            **(MODEL | {"width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1} | model)
        )
        vocabularies = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY}
        self.model = build_model(section, **vocabularies, pad=SPECIAL.pad, seed=1).to(DEVICE)
        drawn = torch.Generator().manual_seed(1)
        with torch.no_grad():
            # Biases begin at zero, where a lost one would not be missed.
            for name, parameter in self.model.named_parameters():
                if name.endswith("bias"):
                    parameter.copy_(0.1 * torch.randn(parameter.shape, generator=drawn))
        world = SoloWorld(device=DEVICE)
        self.buckets = GradientBuckets(list(self.model.parameters()), world, slots=1)
        self.clock = PhaseClock(DEVICE)

    def plain(self) -> Pass:
        precision = Precision("fp32", DEVICE)
        return PlainPass(
            self.model, precision=precision, buckets=self.buckets, smoothing=0.1, clock=self.clock
        )

    def fused(self, dtype: torch.dtype = torch.float32, *, fp8: bool = False) -> FusedPass:
        self.halves: dict[Tensor, Tensor] = {
            each: each.detach().to(dtype, copy=True) for each in self.model.parameters()
        }
        return FusedPass(
            self.model, halves=self.halves, buckets=self.buckets, smoothing=0.1, clock=self.clock, fp8=fp8
        )

    def fused_fp8(self) -> FusedPass:
        """With what fp8 has beside it on this device."""
        return self.fused(torch.bfloat16 if DEVICE.type == "cuda" else torch.float32, fp8=True)

    def learn(self, learn: Pass, batch: Batch[Tensor], *, seed: int = 1) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss and likelihood, and all gradients."""
        self.buckets.clear()
        factor = torch.tensor(0.125, device=DEVICE)
        sums = learn(batch, seed=seed, factor=factor, last=False)
        named = self.model.named_parameters()
        gradients = {name: parameter.grad.clone() for name, parameter in named if parameter.grad is not None}
        return torch.stack([value.float() for value in sums]), gradients


def draw(lengths: list[tuple[int, int]], *, capacity: int = 96) -> Batch[Tensor]:
    """A packed batch of sentences with so many pieces."""
    generator = np.random.default_rng(len(lengths))

    def sentence(pieces: int) -> list[int]:
        return [int(piece) for piece in generator.integers(4, VOCABULARY, pieces)]

    return pack([(sentence(source), sentence(target)) for source, target in lengths], capacity=capacity)


BATCH = [(3, 5), (66, 8), (1, 1), (12, 70), (7, 6)]
SHORT = [(3, 5), (6, 4), (1, 1)]
"""Where long sentences would only take longer, as would more places than theirs."""
SHORT_PLACES = 16


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
def test_loss_and_every_gradient_are_those_of_the_plain_pass(variant: dict[str, Any]) -> None:
    bench = Bench(**variant)
    batch = draw(BATCH)
    sums, gradients = bench.learn(bench.fused(), batch)
    expected_sums, expected = bench.learn(bench.plain(), batch)
    torch.testing.assert_close(sums, expected_sums, rtol=1e-5, atol=1e-4)
    assert gradients.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], rtol=2e-4, atol=2e-5 * largest, msg=name)


def test_gradients_of_several_batches_add_up() -> None:
    bench = Bench()
    batches = [draw(SHORT[:2], capacity=SHORT_PLACES), draw(SHORT[2:], capacity=SHORT_PLACES)]
    learn = bench.fused()
    one, other = (bench.learn(learn, batch)[1] for batch in batches)
    # To what the other one left.
    learn(batches[0], seed=1, factor=torch.tensor(0.125, device=DEVICE), last=False)
    for name, parameter in bench.model.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, one[name] + other[name])


def test_a_batch_without_pairs_teaches_nothing() -> None:
    bench = Bench()
    sums, gradients = bench.learn(bench.fused(), draw([], capacity=SHORT_PLACES))
    assert not sums.any()
    assert not any(gradient.any() for gradient in gradients.values())


def test_dropout_follows_from_the_seed() -> None:
    bench = Bench(dropout=0.3, attention_dropout=0.2, activation_dropout=0.2)
    learn, batch = bench.fused(), draw(SHORT, capacity=SHORT_PLACES)
    first, again, other = (bench.learn(learn, batch, seed=seed) for seed in (2**62 + 1, 2**62 + 1, 2**61 + 1))
    assert torch.equal(first[0], again[0])
    assert all(torch.equal(gradient, again[1][name]) for name, gradient in first[1].items())
    assert first[0][0] != other[0][0]


def test_every_parameter_is_announced_once_its_gradient_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tied="target")
    told: list[Tensor] = []
    held: list[Tensor] = []

    def note(parameter: Tensor) -> None:
        assert parameter.grad is not None
        told.append(parameter)
        held.append(parameter.grad.clone())

    monkeypatch.setattr(bench.buckets, "note", note)
    bench.learn(bench.fused(), draw(SHORT, capacity=SHORT_PLACES))
    assert sorted(map(id, told)) == sorted(map(id, bench.model.parameters()))
    assert all(
        torch.equal(gradient, parameter.grad)
        for gradient, parameter in zip(held, told, strict=True)
        if parameter.grad is not None
    )


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
@pytest.mark.parametrize("fp8", [False, pytest.param(True, marks=has_fp8)])
def test_a_graph_replays_what_single_launches_do_for_any_batch_of_its_shape(
    fp8: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(dropout=0.2)
    eager = bench.fused(torch.bfloat16, fp8=fp8)
    example, batch = (
        in_one_block(drawn.map(Tensor.numpy), pinned=True)
        for drawn in (draw(BATCH), draw([(9, 9)] * 9))
        if isinstance(drawn, PackedBatch)
    )
    graphed = GraphedPass(eager, example)
    for each in (batch, example):
        expected_sums, expected = bench.learn(eager, each, seed=5)
        with monkeypatch.context() as patch:
            patch.setattr(FusedPass, "__call__", None)
            sums, gradients = bench.learn(graphed, each, seed=5)
        assert torch.equal(sums, expected_sums)
        assert all(torch.equal(gradient, expected[name]) for name, gradient in gradients.items())


@has_fp8
@pytest.mark.parametrize("variant", VARIANTS[:3], ids=lambda variant: "-".join(map(str, variant.values())))
def test_fp8_points_where_fp32_does(variant: dict[str, Any]) -> None:
    bench = Bench(**variant)
    batch = draw(BATCH)
    sums, gradients = bench.learn(bench.fused_fp8(), batch)
    expected_sums, expected = bench.learn(bench.plain(), batch)
    torch.testing.assert_close(sums, expected_sums, rtol=1e-2, atol=1e-1)
    assert not torch.equal(sums, expected_sums)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        assert torch.cosine_similarity(gradient.flatten(), expected[name].flatten(), dim=0) > 0.97, name
        torch.testing.assert_close(gradient.norm(), expected[name].norm(), rtol=0.1, atol=0)


@has_fp8
def test_fp8_repeats_itself_to_the_bit_and_follows_the_weights() -> None:
    bench = Bench(dropout=0.2)
    learn, batch = bench.fused_fp8(), draw(SHORT, capacity=SHORT_PLACES)
    first, again = (bench.learn(learn, batch, seed=4) for _ in range(2))
    assert torch.equal(first[0], again[0])
    assert all(torch.equal(gradient, again[1][name]) for name, gradient in first[1].items())
    with torch.no_grad():
        for parameter, half in bench.halves.items():
            parameter.mul_(1.5)
            half.copy_(parameter)
    sums, gradients = bench.learn(learn, batch, seed=4)
    expected_sums, expected = bench.learn(bench.fused_fp8(), batch, seed=4)
    assert sums[0] != first[0][0]
    assert torch.equal(sums, expected_sums)
    assert all(torch.equal(gradient, expected[name]) for name, gradient in gradients.items())


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
def test_bf16_is_near_the_plain_pass_in_fp32() -> None:
    bench = Bench()
    batch = draw(BATCH)
    sums, gradients = bench.learn(bench.fused(torch.bfloat16), batch)
    expected_sums, expected = bench.learn(bench.plain(), batch)
    torch.testing.assert_close(sums, expected_sums, rtol=1e-2, atol=1e-1)
    difference = sum(float((gradients[name] - expected[name]).square().sum()) for name in expected)
    total = sum(float(gradient.square().sum()) for gradient in expected.values())
    assert difference < (0.03**2) * total
