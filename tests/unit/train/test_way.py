from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tandem.config import Recipe
from tandem.data.batches.shape import BatchShape
from tandem.data.prepared import open_prepared
from tandem.data.shards.shardset import ShardSet
from tandem.errors import TandemError
from tandem.parallel.world import SoloWorld, World
from tandem.telemetry.clock import PhaseClock
from tandem.train.learner import Learner
from tandem.train.way import Way, _say, _unfit, choose_way, record_way

RecipeWith = Callable[..., Recipe]

GPU = torch.device("cuda")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@dataclass(frozen=True, kw_only=True)
class Place:
    learner: Learner
    shards: ShardSet

    def choose(self, world: World | None = None) -> Way:
        device = self.learner.model.target_embedding.device
        return choose_way(
            self.learner,
            self.shards,
            world=world or SoloWorld(device=device),
            smoothing=0.1,
            clock=PhaseClock(device),
        )


def build_place(recipe: Recipe, device: torch.device) -> Place:
    prepared = open_prepared(recipe.prepared_folder)
    learner = Learner.build(recipe, prepared.subword(), SoloWorld(device=device))
    return Place(learner=learner, shards=prepared.plan().shards)


def test_a_cpu_computes_plainly_and_says_nothing_of_it(micro: Recipe) -> None:
    place = build_place(micro, torch.device("cpu"))
    way = place.choose()
    assert (way.name, way.reason) == ("plain", "")
    shape = BatchShape(layout="padded", source_tokens=256, target_tokens=256)
    assert record_way(way, place.shards, shape) is way


@pytest.mark.gpu
@needs_gpu
def test_a_gpu_replays_fused_kernels(micro: Recipe) -> None:
    place = build_place(micro, GPU)
    way = place.choose()
    assert (way.name, way.reason) == ("fused", "")
    assert not any(
        parameter.grad.any() for parameter in place.learner.model.parameters() if parameter.grad is not None
    )
    shape = BatchShape(layout="packed", source_tokens=512, target_tokens=512)
    assert record_way(way, place.shards, shape).name == "graph"


@pytest.mark.gpu
@needs_gpu
def test_kernels_that_fail_are_done_without_and_the_reason_is_told(
    micro: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such instruction\nand more")

    monkeypatch.setattr("tandem.kernels.norm.forward", fail)
    way = build_place(micro, GPU).choose()
    assert (way.name, way.reason) == ("plain", "the fused kernels failed here: no such instruction")


class OtherIsPlain(SoloWorld):
    """A second rank that has no kernels."""

    def sum(self, tensor: Tensor) -> None:
        tensor += 1


def test_all_ranks_compute_plainly_where_one_must(micro: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    place = build_place(micro, torch.device("cpu"))

    def choose(plain: Way, learner: Learner, *_: Any, **__: Any) -> Way:
        learner.optimizer.halves(torch.float16)
        return replace(plain, name="fused")

    monkeypatch.setattr("tandem.train.way._choose", choose)
    assert place.choose().name == "fused"
    way = place.choose(OtherIsPlain(device=torch.device("cpu")))
    assert (way.name, way.reason) == ("plain", "another rank cannot run the fused kernels")


@pytest.mark.gpu
@needs_gpu
def test_a_gpu_without_triton_computes_plainly(micro: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.train.way.find_spec", lambda _: None)
    way = build_place(micro, GPU).choose()
    assert (way.name, way.reason) == ("plain", "Triton is not installed")


@pytest.mark.gpu
@needs_gpu
def test_fp8_goes_the_same_way(recipe_with: RecipeWith) -> None:
    place = build_place(recipe_with("train.precision=fp8"), GPU)
    way = place.choose()
    assert (way.name, way.reason) == ("fused", "")
    assert place.learner.precision.name == "fp8"


@pytest.mark.gpu
@needs_gpu
def test_fp8_of_odd_matrices_is_refused(recipe_with: RecipeWith) -> None:
    place = build_place(recipe_with("train.precision=fp8", "model.feed_forward=72"), GPU)
    with pytest.raises(
        TandemError, match=r"sides that 16 divides, and model\.feed_forward is 72: make it bf16"
    ):
        place.choose()


@pytest.mark.gpu
@needs_gpu
def test_fp8_without_fused_kernels_is_refused(
    recipe_with: RecipeWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.train.way.find_spec", lambda _: None)
    place = build_place(recipe_with("train.precision=fp8"), GPU)
    with pytest.raises(TandemError, match=r"cannot be had here, as Triton is not installed: make it bf16"):
        place.choose()


@pytest.mark.gpu
@needs_gpu
def test_a_graph_that_does_not_fit_is_done_without(micro: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise torch.OutOfMemoryError

    place = build_place(micro, GPU)
    monkeypatch.setattr("tandem.train.fused.GraphedPass.__init__", fail)
    shape = BatchShape(layout="packed", source_tokens=512, target_tokens=512)
    way = record_way(place.choose(), place.shards, shape)
    assert (way.name, way.reason) == ("fused", "a batch does not fit into memory as a CUDA graph")


@pytest.mark.gpu
@needs_gpu
def test_a_graph_that_cannot_be_recorded_is_done_without(
    micro: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    place = build_place(micro, GPU)
    monkeypatch.setattr("tandem.train.fused.GraphedPass.__init__", fail)
    shape = BatchShape(layout="packed", source_tokens=512, target_tokens=512)
    way = record_way(place.choose(), place.shards, shape)
    assert way.name == "fused"
    assert way.reason == "no CUDA graph could be recorded: operation not permitted when stream is capturing"


@pytest.mark.parametrize(
    ("width", "heads", "sentence"),
    [
        (64, 4, ""),
        (96, 2, "heads of 48 numbers have no fused kernel, which wants 16, 32, 64, 128 or 256"),
        (64, 8, "heads of 8 numbers have no fused kernel, which wants 16, 32, 64, 128 or 256"),
    ],
)
def test_heads_that_kernels_cannot_take_are_named(
    recipe_with: RecipeWith, width: int, heads: int, sentence: str
) -> None:
    recipe = recipe_with(f"model.width={width}", f"model.heads={heads}")
    assert _unfit(build_place(recipe, torch.device("cpu")).learner) == sentence


def test_a_vocabulary_that_the_fused_loss_cannot_take_is_named(
    recipe_with: RecipeWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = build_place(recipe_with("model.width=64", "model.heads=4"), torch.device("cpu"))
    monkeypatch.setattr("tandem.kernels.cross_entropy.LARGEST_VOCABULARY", 16)
    pieces = len(place.learner.model.output_weight)
    assert _unfit(place.learner) == f"{pieces:,} pieces have no fused loss, which takes 16"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("out of memory\nand more", "out of memory"),
        ("at 83:15:\n    x = tl.arange(0, K)\n    ^\nK must be a power of 2", "K must be a power of 2"),
        ("", "RuntimeError"),
    ],
)
def test_an_error_is_told_in_one_line(text: str, said: str) -> None:
    assert _say(RuntimeError(text)) == said
