"""Real ranks for a test: processes that meet over gloo, and what each of them came to."""

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from tandem.parallel.key_values import STORE
from tandem.parallel.world import World, open_world

__all__ = ["leave", "run_ranks"]

DEADLINE_S = 60
# Imported once for all ranks; the last one by torch, at the first backward pass.
PRELOADED = ["pytest", "tandem.train.assemble", "torch.fx.experimental.symbolic_shapes"]


def run_ranks(work: Callable[..., Any], size: int, *arguments: Any) -> list[Any]:
    """`work(world, *arguments)` on each rank; a failure of any of them fails the test, in its words."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    folder = tempfile.TemporaryDirectory(prefix="tandem-ranks-")
    meeting = {STORE: f"{folder.name}/store"}
    ends, ranks = [], []
    for rank in range(size):
        ours, theirs = context.Pipe(duplex=False)
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        environment = meeting | {name: str(number) for name, number in numbers.items()}
        ranks.append(context.Process(target=_run, args=(theirs, environment, work, arguments), daemon=True))
        ranks[-1].start()
        theirs.close()
        ends.append(ours)
    try:
        told = [end.recv() if end.poll(DEADLINE_S) else (False, "was not heard of in time") for end in ends]
    finally:
        for process in ranks:
            process.join(1)
            process.kill()
            process.join()
        folder.cleanup()
    failures = [f"rank {rank}: {result}" for rank, (good, result) in enumerate(told) if not good]
    assert not failures, "\n".join(failures)
    return [result for _, result in told]


def leave(world: World) -> None:
    """Leave the test's own world, to meet again as a run does: in another file, as others may still be in this one."""
    world.close()
    os.environ[STORE] += "-again"


def _run(
    end: Connection, environment: dict[str, str], work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        world: World = open_world("cpu", timeout_s=DEADLINE_S)
        result = work(world, *arguments)
        end.send((True, result))
        world.close()
    except BaseException as error:
        end.send((False, f"{type(error).__name__}: {error}"))
        raise
