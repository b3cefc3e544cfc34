"""Fine-tuning: a new run that begins with the weights of a model that has learned already."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from tandem.checkpoint.bundle import find_bundle, open_bundle
from tandem.data.subword.learn import Subword
from tandem.errors import TandemError
from tandem.parallel.world import World
from tandem.train.learner import Learner

__all__ = ["start_from"]


def start_from(model: Path, learner: Learner, subword: Subword, world: World) -> None:
    """Give the learner the weights of a run, a checkpoint or a bundle; rank 0 reads it, and all ranks get it.

    What does not fit ends the run on every rank with the same sentence.
    """
    failure = ""
    if world.rank == 0:
        try:
            _take(model, learner, subword)
        except (OSError, TandemError) as error:
            failure = str(error)
    told = cast(list[Mapping[str, Any]], world.gather({"failure": failure}))
    if told[0]["failure"]:
        raise TandemError(told[0]["failure"])
    learner.restore(None, world)


def _take(model: Path, learner: Learner, subword: Subword) -> None:
    folder = find_bundle(model)
    bundle = open_bundle(folder)
    if bundle.subword.fingerprint != subword.fingerprint:
        joint = folder / "subword.model"
        cure = (
            f"prepare the data with its pieces, subword.model={joint}"
            if joint.is_file()
            else "it does not have one subword model for both languages, so it can be trained further only on the data "
            "that it was trained on"
        )
        raise TandemError(f"train.start_from has other pieces than the data ({folder}): {cure}.")
    _refuse_other(learner.weights(), bundle.weights, folder)
    weights = {name: tensor.float() for name, tensor in bundle.weights.items()}
    # Where averages translate, the weights themselves begin there too.
    raw = {f"weight.{name}": tensor for name, tensor in weights.items()}
    learner.optimizer.load({**learner.optimizer.state_tensors(), **raw}, weights=weights)


def _refuse_other(own: Mapping[str, Tensor], given: Mapping[str, Tensor], folder: Path) -> None:
    for name in sorted(own.keys() | given.keys()):
        shapes = [list(held[name].shape) if name in held else "missing" for held in (own, given)]
        if shapes[0] != shapes[1]:
            raise TandemError(
                f"train.start_from holds another model ({name} is {shapes[1]} in {folder}, but {shapes[0]} in the "
                f"recipe's model): take over the model section of {folder / 'recipe.yaml'}."
            )
