from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tandem.config import Recipe, load_recipe
from tandem.data.batches.shape import BatchShape
from tandem.parallel import SoloWorld
from tandem.train.capacity import describe_shape, layout_for, maybe_same_shape

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
SHAPE = BatchShape(layout="padded", source_tokens=512, target_tokens=640)


@pytest.fixture
def base(repository: Path) -> Recipe:
    return load_recipe(repository / "recipes" / "wmt-ende-big.yaml", ["model.attention_dropout=0"]).recipe


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


def test_a_shape_is_taken_up_again_by_as_many_ranks_of_the_same_kind() -> None:
    world = SoloWorld(device=CPU)
    held = describe_shape(SHAPE, world)
    assert maybe_same_shape(held, world) == SHAPE
    assert maybe_same_shape(held, replace(world, size=2)) is None
    assert maybe_same_shape(held, replace(world, device=GPU)) is None
    assert maybe_same_shape({}, world) is None
