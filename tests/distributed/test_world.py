"""What ranks say to each other."""

import time
from pathlib import Path
from typing import Any

import torch
from tests.distributed.ranks import run_ranks

from tandem.parallel.pulse import PulseState, PulseWriter, read_pulse
from tandem.parallel.world import World


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
    world.share(tensor := number + 1, 2)
    results["share of the last"] = tensor.tolist()
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
    assert results["share of the last"] == [3.0, -1.0]


def wait_to_be_seen(world: World, folder: Path) -> PulseState | None:
    """Rank 0 goes into a barrier, which rank 1 enters only when it has seen that in the pulse."""
    pulse = PulseWriter(folder / f"pulse-{world.rank}")
    world.pulse = pulse  # type: ignore[misc]
    world.gather("both are here")
    seen = None
    if world.rank == 1:
        deadline = time.monotonic() + 30
        while seen is None or not (seen.is_waiting and seen.collective == "barrier"):
            assert time.monotonic() < deadline, seen
            seen = read_pulse(folder / "pulse-0")
    world.barrier()
    handle = world.start_sum(torch.zeros(1), "sum of bucket 1")
    handle.wait()
    return seen or read_pulse(folder / "pulse-0")


def test_a_rank_that_waits_for_the_others_is_seen_to_wait(tmp_path: Path) -> None:
    after, before = run_ranks(wait_to_be_seen, 2, tmp_path)
    assert (before.begun, before.done, before.is_waiting) == (3, 2, True)
    assert (after.begun, after.done, after.is_waiting) == (4, 4, False)
    assert after.collective == "sum of bucket 1"
    assert after.waited_s > before.waited_s
