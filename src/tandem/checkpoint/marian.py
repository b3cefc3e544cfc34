"""Which weight of ours is which of a Marian or Pegasus model of Hugging Face's transformers."""

# Both are the same network, but for where it normalises: Marian after the sums, Pegasus before the sublayers.

from collections.abc import Iterator, Mapping
from itertools import product

import torch
from torch import Tensor

from tandem.config import ModelSection
from tandem.errors import TandemError

__all__ = ["BIAS", "POSITIONS", "fits", "ours", "theirs"]

BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")

_ENCODER = {
    "attention.query_key_value": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention.output": ("self_attn.out_proj",),
    "around_attention.norm": ("self_attn_layer_norm",),
    "feed_forward.inner": ("fc1",),
    "feed_forward.output": ("fc2",),
    "around_feed_forward.norm": ("final_layer_norm",),
}
_DECODER = {
    **_ENCODER,
    "cross_attention.query": ("encoder_attn.q_proj",),
    "cross_attention.key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attention.output": ("encoder_attn.out_proj",),
    "around_cross_attention.norm": ("encoder_attn_layer_norm",),
}
_SHARED = "model.shared.weight"
_SOURCE = "model.encoder.embed_tokens.weight"
_TARGET = "model.decoder.embed_tokens.weight"
_OUTPUT = "lm_head.weight"


def fits(section: ModelSection) -> bool:
    """Whether Marian or Pegasus computes a model of this shape exactly."""
    return section.norm == "layer" and not section.gated and section.positions == "sinusoidal"


def theirs(weights: Mapping[str, Tensor], section: ModelSection) -> dict[str, Tensor]:
    """Our weights under their names; position tables and the bias of the output are not among them."""
    renamed = dict(_embeddings(weights, section))
    for name, parts in _names(section):
        pieces = weights[name].chunk(len(parts))
        renamed.update(zip(parts, pieces, strict=True))
    return {name: tensor.contiguous() for name, tensor in renamed.items()}


def ours(tensors: Mapping[str, Tensor], section: ModelSection) -> dict[str, Tensor]:
    """Their weights under our names; TandemError names one that is missing."""

    def find(*names: str) -> Tensor:
        for name in names:
            if name in tensors:
                return tensors[name]
        raise TandemError(
            f"The model has no tensor {names[0]}: it is not the Marian or Pegasus model that config.json describes."
        )

    target = (_SHARED, _TARGET) if section.tied == "all" else (_TARGET, _SHARED)
    weights = {"target_embedding": find(*target, _OUTPUT)}
    if section.tied != "all":
        weights["source_embedding"] = find(_SOURCE, _SHARED)
    if section.tied == "none":
        weights["output_projection"] = find(_OUTPUT)
    for name, parts in _names(section):
        weights[name] = torch.cat([find(part) for part in parts])
    return weights


def _embeddings(weights: Mapping[str, Tensor], section: ModelSection) -> Iterator[tuple[str, Tensor]]:
    target = weights["target_embedding"]
    if section.tied == "all":
        yield _SHARED, target
        return
    yield _SOURCE, weights["source_embedding"]
    yield _TARGET, target
    if section.norm_place == "pre":
        # Pegasus can tie all three or none: what is tied here is written twice.
        yield _SHARED, weights["source_embedding"].clone()
        yield _OUTPUT, weights.get("output_projection", target).clone()
    elif section.tied == "none":
        yield _OUTPUT, weights["output_projection"]


def _names(section: ModelSection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Our names, and for each those of the parts that are stacked in it."""
    for mine, parts in _modules(section):
        for kind in ("weight", "bias"):
            yield f"{mine}.{kind}", tuple(f"{part}.{kind}" for part in parts)


def _modules(section: ModelSection) -> Iterator[tuple[str, tuple[str, ...]]]:
    sides = (("encoder", section.encoder_layers, _ENCODER), ("decoder", section.decoder_layers, _DECODER))
    for side, layers, table in sides:
        for number, mine in product(range(layers), table):
            parts = tuple(f"model.{side}.layers.{number}.{part}" for part in table[mine])
            yield f"{side}.{number}.{mine}", parts
        if section.norm_place == "pre":
            yield f"{side}_norm", (f"model.{side}.layer_norm",)
