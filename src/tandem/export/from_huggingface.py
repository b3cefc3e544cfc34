"""A model in Hugging Face's format as a bundle, which translates and which training can begin with."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tandem.artefact import JsonValue
from tandem.checkpoint.huggingface import is_huggingface, open_huggingface, read_config, read_model
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import Scores
from tandem.checkpoint.target import refuse_target
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.config import ModelSection, Recipe, recipe_yaml
from tandem.data.subword.model import SentencePieceModel, padded
from tandem.errors import TandemError
from tandem.export.huggingface_engine import load_transformers
from tandem.export.marian_subword import read_vocabulary, renumbered
from tandem.files import read_bounded
from tandem.progress import SILENT, Progress

__all__ = ["import_huggingface"]


def import_huggingface(
    folder: Path, target: Path, *, languages: tuple[str, str], progress: Progress = SILENT
) -> None:
    """Write the model of a local folder as a bundle; of what we exported, the recipe knows the languages better."""
    refuse_target(target)
    with progress.bar(f"importing {folder.name}"):
        draft = _ours(folder) if is_huggingface(folder) else _marian(folder, languages)
        write_checkpoint(target, draft)


def _ours(folder: Path) -> Draft:
    bundle = open_huggingface(folder)
    models: list[SentencePieceModel] = []
    for side in (bundle.subword.source, bundle.subword.target):
        if isinstance(side, SentencePieceModel) and side not in models:
            models.append(side)
    files = dict(zip(_names(len(models)), (read_bounded(model.path) for model in models), strict=True))
    return _draft(folder, bundle.recipe, bundle.weights, files)


def _marian(folder: Path, languages: tuple[str, str]) -> Draft:
    load_transformers()
    section, weights = read_model(folder)
    config = read_config(folder)
    second = folder / "target_vocab.json"
    ids = [read_vocabulary(folder / "vocab.json")]
    ids.append(read_vocabulary(second) if second.is_file() else ids[0])
    for mark in ("<unk>", "</s>", "<pad>"):
        if ids[0].get(mark) != ids[1].get(mark):
            raise TandemError(
                f"{folder} has two ids for {mark}, one a vocabulary, but our models have one: it cannot be read."
            )
    start = int(config["decoder_start_token_id"])
    sides = [
        renumbered(folder / name, each, start=start)
        for name, each in zip(("source.spm", "target.spm"), ids, strict=True)
    ]
    models = sides[:1] if sides[0] == sides[1] else sides
    if len(models) == 2 and section.tied == "all":
        # Two models of one vocabulary cut words differently, and our recipes tie what is cut alike.
        section = section.model_copy(update={"tied": "target"})
        weights = {**weights, "source_embedding": weights["target_embedding"].clone()}
    rows = padded(max(map(len, ids)))
    recipe = _recipe(folder, section, languages, pieces=rows, joint=len(models) == 1)
    weights = {name: _grown(name, tensor, rows, ids[1]["<unk>"]) for name, tensor in weights.items()}
    return _draft(folder, recipe, weights, dict(zip(_names(len(models)), models, strict=True)))


def _names(models: int) -> list[str]:
    return ["subword.model"] if models == 1 else ["source.model", "target.model"]


def _recipe(
    folder: Path, section: ModelSection, languages: tuple[str, str], *, pieces: int, joint: bool
) -> Recipe:
    source, target = languages
    text = {"source": f"train.{source}", "target": f"train.{target}"}
    held: Mapping[str, Any] = {
        "name": re.sub(r"[^A-Za-z0-9._-]", "-", folder.resolve().name).lstrip("._-")[:100] or "imported",
        "data": {"source_language": source, "target_language": target, "train": [text]},
        "subword": {"vocabulary": pieces, "joint": joint},
        "model": section.model_dump(exclude={"preset"}),
    }
    try:
        return Recipe.model_validate(held)
    except ValueError as error:
        raise TandemError(f"{folder} makes no recipe ({error}): check the languages, as en-de.") from error


def _grown(name: str, tensor: Tensor, rows: int, unknown: int) -> Tensor:
    """Embeddings with as many rows as ours have: those that mean nothing are as unlikely as the unknown piece."""
    if name not in {"source_embedding", "target_embedding", "output_projection"}:
        return tensor
    return torch.cat([tensor, tensor[unknown].expand(rows - len(tensor), -1)])


def _draft(folder: Path, recipe: Recipe, weights: Mapping[str, Tensor], models: Mapping[str, bytes]) -> Draft:
    facts: dict[str, JsonValue] = {
        "step": 0,
        "scores": Scores().to_json(),
        "subword": {"models": list(models), "by_word": False},
        "imported": folder.resolve().name,
    }
    texts = {RECIPE: recipe_yaml(recipe).encode(), **models}
    return Draft(
        tensors={MODEL: {name: tensor.clone() for name, tensor in weights.items()}}, texts=texts, facts=facts
    )
