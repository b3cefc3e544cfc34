"""The memory of a rank agrees with what was measured, and what fits follows from it."""

from pathlib import Path

import pytest

from tandem.config import Recipe, load_recipe
from tandem.estimate.memory import (
    _LOGITS_BYTES,
    CONTEXT_BYTES,
    MOST_TOKENS,
    SPARE,
    RankMemory,
    checkpoint_bytes,
    state_bytes,
    way_for,
)
from tandem.train.fit import LARGEST_TOKENS
from tandem.train.fused_loss import _CHUNK_BYTES
from tandem.train.loss import _PIECE_BYTES

MEASURED_GIB = {"base": 8.0, "big": 16.8}
"""torch.cuda.max_memory_allocated on an H200: bf16, 32,000 pieces, 32,768 tokens a side, no running average."""


def recipe_with(repository: Path, *overrides: str) -> Recipe:
    values = ["model.preset=base", "subword.vocabulary=32000", "batch.target_tokens=32768", *overrides]
    return load_recipe(repository / "recipes" / "own-text.yaml", values).recipe


@pytest.mark.parametrize("preset", MEASURED_GIB)
def test_the_count_comes_close_to_the_peak_that_was_measured(repository: Path, preset: str) -> None:
    memory = RankMemory.of(recipe_with(repository, f"model.preset={preset}", "model.dropout=0.1"))
    peak = memory.state + memory.pass_bytes(source_tokens=32_768, target_tokens=32_768)
    assert peak / 2**30 == pytest.approx(MEASURED_GIB[preset], rel=0.05)


def test_weights_gradients_and_moments_take_sixteen_bytes_a_parameter_and_what_else_is_used_more() -> None:
    assert state_bytes(10, way="full", averaged=False) == 160
    assert state_bytes(10, way="fused", averaged=False) == 180
    assert state_bytes(10, way="fused", averaged=True) == 220
    assert state_bytes(10, way="fused", averaged=False, muon=True) == 290


def test_a_checkpoint_takes_twelve_bytes_a_parameter_and_sixteen_with_averages() -> None:
    assert checkpoint_bytes(10, averaged=False) == 120
    assert checkpoint_bytes(10, averaged=True) == 160


@pytest.mark.parametrize(
    ("precision", "fused", "way"),
    [("auto", True, "fused"), ("bf16", False, "half"), ("fp32", True, "full"), ("tf32", False, "full")],
)
def test_the_way_follows_from_the_precision(repository: Path, precision: str, fused: bool, way: str) -> None:
    assert way_for(recipe_with(repository, f"train.precision={precision}"), fused=fused) == way


@pytest.mark.parametrize(
    ("preset", "gigabytes"), [("base", 8), ("base", 16), ("big", 8), ("big", 16), ("big", 24)]
)
def test_one_step_more_than_the_largest_does_not_fit(repository: Path, preset: str, gigabytes: int) -> None:
    memory = RankMemory.of(recipe_with(repository, f"model.preset={preset}"))
    tokens = memory.largest_on(gigabytes * 1e9)
    assert 0 < tokens < MOST_TOKENS
    needed = [memory.pass_bytes(source_tokens=each, target_tokens=each) for each in (tokens, tokens + 64)]
    room = gigabytes * 1e9 * (1 - SPARE) - CONTEXT_BYTES - memory.state
    assert needed[0] <= room < needed[1]


def test_nothing_fits_where_the_state_alone_is_too_large(repository: Path) -> None:
    memory = RankMemory.of(recipe_with(repository, "model.preset=big"))
    assert memory.largest_on(memory.state) == 0


def test_a_running_average_leaves_less_room(repository: Path) -> None:
    without, with_average = (
        RankMemory.of(recipe_with(repository, f"optim.ema_decay={decay}")).largest_on(8e9)
        for decay in (0, 0.999)
    )
    assert with_average < without


def test_sides_of_different_length_cost_what_their_own_tokens_do(repository: Path) -> None:
    memory = RankMemory.of(recipe_with(repository))
    one, other = (
        memory.pass_bytes(source_tokens=source, target_tokens=20_000) for source in (10_000, 11_000)
    )
    assert other - one == 1000 * memory.kept.source


def test_the_limits_are_those_of_training() -> None:
    assert _LOGITS_BYTES == _CHUNK_BYTES["cuda"] == _PIECE_BYTES["cuda"]
    assert MOST_TOKENS == LARGEST_TOKENS
