from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.launch.doctor.findings import GPU, MACHINE, host

from tandem.config import Recipe, load_recipe
from tandem.launch.doctor.judge_memory import judge_memory
from tandem.launch.doctor.needs import Needs


@pytest.fixture
def recipe(repository: Path) -> Recipe:
    return load_recipe(repository / "recipes/wmt-ende-big.yaml", ()).recipe


def test_without_a_recipe_nothing_is_said() -> None:
    assert list(judge_memory(host(), Needs.of(None), ranks=1)) == []


@pytest.mark.parametrize(
    ("gigabytes", "words", "verdict"),
    [(140, "fits at once", "fine"), (8, "fits in pieces", "fine"), (3, "does not fit", "broken")],
)
def test_a_batch_is_held_against_the_smallest_gpu(
    recipe: Recipe, gigabytes: int, words: str, verdict: str
) -> None:
    small = replace(GPU, memory_bytes=gigabytes * 10**9)
    machine = replace(MACHINE, gpus=(GPU, small), usable_gpus=2)
    (line,) = judge_memory(host(machine=machine), Needs.of(recipe), ranks=2)
    assert (line.what, line.verdict) == ("worst batch", verdict)
    assert line.value.endswith(words)


def test_without_a_gpu_the_workers_share_the_memory(recipe: Recipe) -> None:
    machine = replace(MACHINE, available_bytes=16 * 10**9)
    assert [line.verdict for line in judge_memory(host(machine=machine), Needs.of(recipe), ranks=1)] == [
        "fine"
    ]
    crowded = host(machine=machine, workers=8)
    assert [line.verdict for line in judge_memory(crowded, Needs.of(recipe), ranks=8)] == ["broken"]
