"""Models in Hugging Face's format: what we exported opens as a bundle, and what others trained is read with care."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tandem.artefact import parse_manifest, read_manifest, read_raw_manifest
from tandem.checkpoint.bundle import Bundle
from tandem.checkpoint.layout import MODEL, RECIPE
from tandem.checkpoint.listing import verify_files
from tandem.checkpoint.marian import BIAS, POSITIONS, fits, ours
from tandem.checkpoint.subword import open_subword_files, subword_models
from tandem.checkpoint.tensors import read_tensors
from tandem.config import ModelSection, load_recipe
from tandem.errors import TandemError
from tandem.files import read_json
from tandem.model.positions import build_positions

__all__ = [
    "CONFIG",
    "KIND",
    "OWN_KIND",
    "OWN_PREFIX",
    "VERSION",
    "is_huggingface",
    "open_huggingface",
    "read_config",
    "read_model",
]

KIND = "Hugging Face model"
VERSION = 1
CONFIG = "config.json"
OWN_KIND = "tandem"
"""What `config.json` calls a model that no class of transformers computes: code that computes it lies beside it."""
OWN_PREFIX = "network."
"""Before our names of weights in such a folder."""
_PLACES = {"marian": "post", "pegasus": "pre"}
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
_SAME = 1e-5
"""Tables of waves differ by less where they are the same waves."""


def is_huggingface(folder: Path) -> bool:
    """Whether the folder says of itself that we exported it to Hugging Face; it may be damaged."""
    try:
        return parse_manifest(read_raw_manifest(folder), folder=folder).kind == KIND
    except (OSError, TandemError):
        return False


def open_huggingface(folder: Path) -> Bundle:
    """Open a folder that we exported, every byte that is used of it checked."""
    manifest = read_manifest(folder, kind=KIND, version=VERSION)
    facts: Mapping[str, Any] = manifest.facts
    verify_files(folder, manifest, [MODEL, CONFIG, RECIPE, *subword_models(folder, facts)])
    recipe = load_recipe(folder / RECIPE).recipe
    return Bundle(
        recipe=recipe,
        subword=open_subword_files(folder, facts),
        weights=_read_weights(folder, recipe.model) if fits(recipe.model) else _read_own(folder),
    )


def read_model(folder: Path) -> tuple[ModelSection, dict[str, Tensor]]:
    """Shape and weights of a Marian or Pegasus model; what our model cannot compute exactly is refused."""
    config = read_config(folder)
    section = _read_section(folder, config)
    return section, _read_weights(folder, section, pad=config.get("pad_token_id"))


def _read_weights(folder: Path, section: ModelSection, *, pad: int | None = None) -> dict[str, Tensor]:
    if not (folder / MODEL).is_file():
        raise TandemError(
            f"{folder} has no {MODEL}: save the model with save_pretrained of a newer transformers, which writes "
            "safetensors; other formats can run code when they are opened."
        )
    tensors = read_tensors(folder / MODEL)
    _refuse_bias(folder, tensors.get(BIAS), pad)
    _refuse_other_waves(folder, tensors, section)
    return {name: tensor.float() for name, tensor in ours(tensors, section).items()}


def _read_own(folder: Path) -> dict[str, Tensor]:
    """Weights under our own names; whether all are there, the one who builds the model sees."""
    tensors = read_tensors(folder / MODEL)
    return {name.removeprefix(OWN_PREFIX): tensor.float() for name, tensor in tensors.items()}


def read_config(folder: Path) -> Mapping[str, Any]:
    """What config.json says."""
    path = folder / CONFIG
    if not path.is_file():
        raise TandemError(
            f"{folder} is no model in Hugging Face's format (it has no {CONFIG}): name a folder on this machine that "
            "save_pretrained wrote."
        )
    try:
        config = read_json(path, links=True)
    except ValueError as error:
        raise TandemError(f"{path} is not JSON ({error}): copy it again.") from error
    if isinstance(config, dict) and config.get("model_type") == OWN_KIND:
        raise TandemError(
            f"{folder} lost the manifest, recipe or subword model that Tandem wrote beside its weights: copy the whole "
            "folder again."
        )
    if not isinstance(config, dict) or config.get("model_type") not in _PLACES:
        kind = config.get("model_type") if isinstance(config, dict) else None
        raise TandemError(f"{path} describes a model of type {kind!r}: only marian and pegasus can be read.")
    return config


def _read_section(folder: Path, config: Mapping[str, Any]) -> ModelSection:
    for key in ("attention_heads", "ffn_dim"):
        if config.get(f"encoder_{key}") != config.get(f"decoder_{key}"):
            raise TandemError(
                f"{folder / CONFIG} has unequal encoder_{key} and decoder_{key}, which our models have not."
            )
    if config.get("scale_embedding") is not True:
        raise TandemError(
            f"{folder / CONFIG} has scale_embedding false, but our models scale their embeddings."
        )
    activation = _ACTIVATIONS.get(str(config.get("activation_function")))
    if activation is None:
        raise TandemError(
            f"{folder / CONFIG} has activation_function {config.get('activation_function')!r}: only "
            f"{', '.join(_ACTIVATIONS)} can be read."
        )
    place = _PLACES[config["model_type"]]
    try:
        return ModelSection.model_validate(
            {
                "width": config["d_model"],
                "heads": config["encoder_attention_heads"],
                "encoder_layers": config["encoder_layers"],
                "decoder_layers": config["decoder_layers"],
                "feed_forward": config["encoder_ffn_dim"],
                "dropout": float(config.get("dropout", 0.1)),
                "attention_dropout": float(config.get("attention_dropout", 0.0)),
                "activation_dropout": float(config.get("activation_dropout", 0.0)),
                "norm_place": place,
                "activation": activation,
                "tied": _tied(config),
            }
        )
    except (KeyError, ValueError) as error:
        raise TandemError(
            f"{folder / CONFIG} does not describe a whole model ({error}): copy it again."
        ) from error


def _tied(config: Mapping[str, Any]) -> str:
    tied = config.get("tie_word_embeddings", True)
    if config["model_type"] == "pegasus" or config.get("share_encoder_decoder_embeddings", True):
        return "all" if tied else "none"
    return "target" if tied else "none"


def _refuse_bias(folder: Path, bias: Tensor | None, pad: int | None) -> None:
    """Refuse a bias of anything that is ever said: padding never is, whatever is added to it."""
    if bias is None:
        return
    if any(place != pad for place in bias.flatten().nonzero().flatten().tolist()):
        raise TandemError(
            f"{folder / MODEL} adds {BIAS} to its output, which our models do not: it cannot be read exactly."
        )


def _refuse_other_waves(folder: Path, tensors: Mapping[str, Tensor], section: ModelSection) -> None:
    for name in POSITIONS:
        table = tensors.get(name)
        if table is None:
            raise TandemError(
                f"{folder / MODEL} has no position table ({name}), so its waves are those of transformers, which "
                "differ from ours: only a model with our waves in its file, as tandem export writes it, can be read."
            )
        if not _are_our_waves(table, section):
            raise TandemError(
                f"{folder / MODEL} has other position waves than ours ({name}): it cannot be read exactly."
            )


def _are_our_waves(table: Tensor, section: ModelSection) -> bool:
    places = torch.arange(len(table))
    waves = build_positions("sinusoidal", places, width=section.width, heads=section.heads).sinusoids_XD
    return (
        waves is not None and waves.shape == table.shape and torch.allclose(waves, table.float(), atol=_SAME)
    )
