"""One rank of a run whose gradients are summed over ranks in every other block of steps only: for benchmarks."""

import sys
from pathlib import Path
from typing import Any

from torch import Tensor

from tandem.config import load_recipe
from tandem.data.batches.stream import UpdateBatches
from tandem.parallel.world import Handle, TorchWorld
from tandem.train.assemble import Options, train_rank
from tandem.train.step import StepResult, TrainingStep

__all__ = ["BLOCK_STEPS", "is_exchanged"]

BLOCK_STEPS = 6


def is_exchanged(step: int) -> bool:
    """Whether ranks exchange gradients in this step: in the second block, the fourth and so on."""
    return (step - 1) // BLOCK_STEPS % 2 == 1


class _Nothing:
    """The handle of a sum that is left out."""

    def wait(self) -> None:
        pass


def main() -> None:
    """Be a rank, as the environment says, of a run in the folder of the first word, by the recipe of the second."""
    run, recipe = map(Path, sys.argv[1:])
    exchanges = True
    start_sum, make_step = TorchWorld.start_sum, TrainingStep.__call__

    def maybe_sum(self: TorchWorld, tensor: Tensor, name: str = "sum") -> Handle:
        return start_sum(self, tensor, name) if exchanges else _Nothing()

    def switched(self: TrainingStep, update: UpdateBatches, *, step: int, **rest: Any) -> StepResult:
        nonlocal exchanges
        exchanges = is_exchanged(step)
        return make_step(self, update, step=step, **rest)

    TorchWorld.start_sum = maybe_sum  # type: ignore[method-assign]
    TrainingStep.__call__ = switched  # type: ignore[method-assign]
    train_rank(run, load_recipe(recipe).recipe, Options(device="cpu"))


if __name__ == "__main__":
    main()
