"""The mean of the weights of several checkpoints, which often translates better than the last of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tandem.checkpoint.bundle import read_weights
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import Scores, read_checkpoint_manifest, verify_files
from tandem.checkpoint.subword import subword_models
from tandem.checkpoint.target import refuse_target
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.errors import TandemError
from tandem.files import read_bounded

__all__ = ["average_weights", "write_average"]


def write_average(folders: Sequence[Path], target: Path) -> None:
    """Write the mean of several checkpoints as a bundle: it translates, but cannot be trained on."""
    refuse_target(target)
    weights = average_weights(folders)
    manifest, _ = read_checkpoint_manifest(folders[-1], sizes=False)
    facts: Mapping[str, Any] = manifest.facts
    kept = [RECIPE, *subword_models(folders[-1], facts)]
    verify_files(folders[-1], manifest, kept)
    draft = Draft(
        tensors={MODEL: weights},
        texts={name: read_bounded(folders[-1] / name) for name in kept},
        facts={
            "step": facts["step"],
            "scores": Scores().to_json(),
            "subword": facts["subword"],
            "averaged": [folder.name for folder in folders],
        },
    )
    write_checkpoint(target, draft)


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of checkpoints of one model; summed in double precision."""
    if not folders:
        raise TandemError("There is nothing to average: name at least one checkpoint.")
    models = [read_weights(folder) for folder in folders]
    for folder, weights in zip(folders[1:], models[1:], strict=True):
        where = f"{folders[0]} and {folder}"
        _refuse_other(models[0], weights, where=where)
        if _subword_checksums(folders[0]) != _subword_checksums(folder):
            raise TandemError(
                f"{where} have different subword models, so the same weight means other pieces: average checkpoints of "
                "one run."
            )
    return {name: _mean([weights[name] for weights in models]) for name in models[0]}


def _refuse_other(first: Mapping[str, Tensor], other: Mapping[str, Tensor], *, where: str) -> None:
    for name in sorted(first.keys() | other.keys()):
        shapes = [str(tuple(held[name].shape)) if name in held else "missing" for held in (first, other)]
        if shapes[0] != shapes[1]:
            raise TandemError(
                f"{where} hold different models ({name} is {shapes[0]} and {shapes[1]}): "
                "average checkpoints of one run."
            )


def _subword_checksums(folder: Path) -> list[str]:
    manifest, _ = read_checkpoint_manifest(folder, sizes=False)
    facts: Mapping[str, Any] = manifest.facts
    return [manifest.files[name].sha256 for name in facts["subword"]["models"]]


def _mean(weights: Sequence[Tensor]) -> Tensor:
    total = torch.zeros(weights[0].shape, dtype=torch.float64)
    for tensor in weights:
        total += tensor
    return (total / len(weights)).to(weights[0].dtype)
