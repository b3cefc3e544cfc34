"""What ranks say to each other."""

from typing import Any

import pytest
import torch
from tests.distributed.ranks import run_ranks

from tandem.errors import TandemError
from tandem.parallel import World


def talk(world: World) -> dict[str, Any]:
    number = torch.tensor([float(world.rank), -float(world.rank)])
    results: dict[str, Any] = {}
    for name in ("sum", "largest", "smallest", "share"):
        tensor = number + 1
        getattr(world, name)(tensor)
        results[name] = tensor.tolist()
    handle = world.start_sum(tensor := number + 1)
    handle.wait()
    results["start_sum"] = tensor.tolist()
    results["gather"] = world.gather({"rank": world.rank, "words": "ä" * (3 * world.rank)})
    world.agree([1, "two", {"three": None}], "nothing in particular")
    with pytest.raises(TandemError) as caught:
        world.agree({"seed": world.rank // 2}, "the recipe")
    results["disagreement"] = str(caught.value)
    world.barrier()
    return results


def test_three_ranks_hear_the_same() -> None:
    heard = run_ranks(talk, 3)
    assert heard[1:] == heard[:-1]
    results = heard[0]
    assert results["sum"] == results["start_sum"] == [6.0, 0.0]
    assert results["largest"] == [3.0, 1.0]
    assert results["smallest"] == [1.0, -1.0]
    assert results["share"] == [1.0, 1.0]
    assert results["gather"] == [{"rank": rank, "words": "ä" * (3 * rank)} for rank in range(3)]
    assert results["disagreement"].startswith("The ranks do not agree on the recipe: rank 0 has")
    assert "different on: 2)" in results["disagreement"]
