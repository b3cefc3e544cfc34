from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tandem.config import Recipe, load_recipe
from tandem.data.batches.shape import BatchShape
from tandem.estimate.memory import MOST_TOKENS, RankMemory
from tandem.parallel.world import SoloWorld
from tandem.train.capacity import (
    CPU_TOKENS,
    LEAST_TOKENS,
    choose_capacity,
    describe_shape,
    layout_for,
    layout_for_evaluation,
    maybe_same_shape,
)

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
SHAPE = BatchShape(layout="padded", source_tokens=512, target_tokens=640)


@pytest.fixture
def base(repository: Path) -> Recipe:
    return load_recipe(repository / "recipes" / "wmt-ende-big.yaml", ["model.attention_dropout=0"]).recipe


@pytest.fixture(autouse=True)
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))


@pytest.mark.parametrize(
    ("device", "precision", "layout"),
    [(GPU, "bf16", "packed"), (GPU, "fp16", "packed"), (GPU, "fp32", "padded"), (CPU, "bf16", "padded")],
)
def test_rows_are_packed_where_there_is_a_kernel_for_it(
    base: Recipe, device: torch.device, precision: str, layout: str
) -> None:
    assert layout_for(base, device, precision, fused=False) == layout


def test_dropout_inside_attention_needs_padded_rows(repository: Path) -> None:
    recipe = load_recipe(repository / "recipes" / "wmt-ende-base.yaml").recipe
    assert layout_for(recipe, GPU, "bf16", fused=False) == "padded"
    assert layout_for(recipe, GPU, "bf16", fused=True) == "packed"
    assert layout_for_evaluation(recipe, GPU, "bf16") == "packed"


def test_an_old_gpu_pads_what_fused_kernels_do_not_compute(
    base: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (7, 5))
    assert layout_for(base, GPU, "fp16", fused=False) == "padded"
    assert layout_for(base, GPU, "fp16", fused=True) == "packed"
    assert layout_for_evaluation(base, GPU, "fp16") == "padded"


@pytest.mark.parametrize(("heads", "layout"), [(16, "packed"), (4, "padded"), (256, "padded")])
def test_heads_that_packed_attention_cannot_take_are_padded(
    repository: Path, heads: int, layout: str
) -> None:
    changes = ["model.attention_dropout=0", f"model.heads={heads}"]
    recipe = load_recipe(repository / "recipes" / "wmt-ende-big.yaml", changes).recipe
    assert layout_for(recipe, GPU, "bf16", fused=False) == layout


def test_a_shape_is_taken_up_again_by_as_many_ranks_of_the_same_kind() -> None:
    world = SoloWorld(device=CPU)
    held = describe_shape(SHAPE, world)
    assert maybe_same_shape(held, world) == SHAPE
    assert maybe_same_shape(held, replace(world, size=2)) is None
    assert maybe_same_shape(held, replace(world, device=GPU)) is None
    assert maybe_same_shape({}, world) is None


def test_a_cpu_takes_what_its_caches_like(base: Recipe) -> None:
    assert choose_capacity(base, CPU) == CPU_TOKENS


@pytest.mark.parametrize("fused", [True, False])
def test_a_gpu_takes_what_fits_beside_what_lies_there_and_leaves_a_tenth(
    base: Recipe, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = 20 * 10**9
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (free, 10 * free))
    tokens = choose_capacity(base, GPU, fused=fused)
    memory = RankMemory.of(base, fused=fused)
    needed = [memory.pass_bytes(source_tokens=each, target_tokens=each) for each in (tokens, tokens + 64)]
    assert needed[0] <= 0.9 * free < needed[1]


def test_plain_operations_leave_room_for_less(base: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (20 * 10**9, 80 * 10**9))
    assert choose_capacity(base, GPU, fused=False) < choose_capacity(base, GPU, fused=True)


@pytest.mark.parametrize(("free", "tokens"), [(10**6, LEAST_TOKENS), (10**12, MOST_TOKENS)])
def test_neither_the_smallest_nor_the_largest_gpu_goes_past_the_bounds(
    base: Recipe, free: int, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (free, free))
    assert choose_capacity(base, GPU) == tokens
