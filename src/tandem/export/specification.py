"""A model in the terms of CTranslate2: which of our weights is which of its variables."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tandem.config import ModelSection
from tandem.data.subword.learn import Subword
from tandem.data.subword.model import SubwordModel
from tandem.model.positions import build_positions
from tandem.translate.ctranslate2_engine import load_ctranslate2

__all__ = ["PLACES", "build_specification", "name_pieces"]

PLACES = 2_048
"""Rows of the position table: pieces of the longest sentence, source or target."""

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}


def build_specification(section: ModelSection, weights: Mapping[str, Tensor], subword: Subword) -> Any:
    """A specification with all weights and vocabularies, ready to be validated and saved."""
    load_ctranslate2()
    kinds = import_module("ctranslate2.specs.transformer_spec")
    how = _how(section)
    encoder = kinds.TransformerEncoderSpec(section.encoder_layers, section.heads, **how)
    decoder = kinds.TransformerDecoderSpec(
        section.decoder_layers,
        section.heads,
        # One layer can be looked at; of many, the last but one tells best which word comes from which.
        alignment_layer=-2 if section.decoder_layers > 2 else -1,
        alignment_heads=section.heads,
        **how,
    )
    _Filler(section, weights).fill(encoder, decoder)
    specification = kinds.TransformerSpec(encoder, decoder)
    _describe(specification, section, subword)
    return specification


def name_pieces(model: SubwordModel, rows: int) -> list[str]:
    """A token for every row of an embedding, no two the same: the pieces, the marks, and rows that mean nothing."""
    marks = {model.special.bos: "<s>", model.special.eos: "</s>", model.special.pad: "<pad>"}
    spelled = {number: text for number in range(rows) for text in model.spell([number])}
    taken = set(spelled.values())
    for number in range(rows):
        if number not in spelled:
            spelled[number] = _free(marks.get(number, f"<empty-{number}>"), taken)
            taken.add(spelled[number])
    return [spelled[number] for number in range(rows)]


def _free(wanted: str, taken: set[str]) -> str:
    while wanted in taken:
        wanted = f"<{wanted}>"
    return wanted


def _how(section: ModelSection) -> dict[str, Any]:
    activations = import_module("ctranslate2.specs.common_spec").Activation
    # The whole width of a head turns, its first half with its second.
    turning = {"rotary_dim": 0, "rotary_interleave": False} if section.positions == "rotary" else {}
    return {
        "pre_norm": section.norm_place == "pre",
        "rms_norm": section.norm == "rms",
        "activation": activations[_ACTIVATIONS[section.activation]],
        "ffn_glu": section.gated,
        **turning,
    }


def _describe(specification: Any, section: ModelSection, subword: Subword) -> None:
    source, target = (name_pieces(model, subword.vocabulary) for model in (subword.source, subword.target))
    specification.register_source_vocabulary(source)
    specification.register_target_vocabulary(target)
    special = subword.target.special  # of both sides, as in the shards
    config = specification.config
    config.unk_token, config.bos_token, config.eos_token = (
        target[number] for number in (special.unk, special.bos, special.eos)
    )
    config.decoder_start_token = config.bos_token
    config.add_source_eos = True
    config.layer_norm_epsilon = 1e-6 if section.norm == "rms" else 1e-5


class _Filler:
    """Puts weights where they belong."""

    def __init__(self, section: ModelSection, weights: Mapping[str, Tensor]) -> None:
        self._section, self._weights = section, weights

    def fill(self, encoder: Any, decoder: Any) -> None:
        encoder.embeddings[0].weight = self._array("source_embedding", otherwise="target_embedding")
        decoder.embeddings.weight = self._array("target_embedding")
        decoder.projection.weight = self._array("output_projection", otherwise="target_embedding")
        for side, layers in (("encoder", encoder), ("decoder", decoder)):
            if self._section.positions == "sinusoidal":
                layers.position_encodings.encodings = self._waves()
            if self._section.norm_place == "pre":
                self._norm(layers.layer_norm, f"{side}_norm")
            for name, layer in self._named(side, layers):
                self._self_attention(layer.self_attention, name)
                self._feed_forward(layer.ffn, name)
        for name, layer in self._named("decoder", decoder):
            self._cross_attention(layer.attention, name)

    @staticmethod
    def _named(side: str, layers: Any) -> Iterator[tuple[str, Any]]:
        return ((f"{side}.{number}", layer) for number, layer in enumerate(layers.layer))

    def _waves(self) -> Any:
        section = self._section
        positions = build_positions(
            "sinusoidal", torch.arange(PLACES), width=section.width, heads=section.heads
        )
        assert positions.sinusoids_XD is not None
        return positions.sinusoids_XD.numpy()

    def _array(self, name: str, *, otherwise: str = "") -> NDArray[np.float32]:
        """A copy: quantization works in place, and the weights are not ours to change."""
        weight = self._weights[name if name in self._weights else otherwise]
        return weight.to(torch.float32, copy=True).numpy()

    def _norm(self, norm: Any, name: str) -> None:
        norm.gamma = self._array(f"{name}.weight")
        if self._section.norm == "layer":
            norm.beta = self._array(f"{name}.bias")

    def _linear(self, linear: Any, name: str, *, part: int = 0, parts: int = 1) -> None:
        linear.weight = np.split(self._array(f"{name}.weight"), parts)[part]
        linear.bias = np.split(self._array(f"{name}.bias"), parts)[part]

    def _self_attention(self, attention: Any, name: str) -> None:
        self._norm(attention.layer_norm, f"{name}.around_attention.norm")
        self._linear(attention.linear[0], f"{name}.attention.query_key_value")
        self._linear(attention.linear[1], f"{name}.attention.output")

    def _cross_attention(self, attention: Any, name: str) -> None:
        self._norm(attention.layer_norm, f"{name}.around_cross_attention.norm")
        self._linear(attention.linear[0], f"{name}.cross_attention.query")
        self._linear(attention.linear[1], f"{name}.cross_attention.key_value")
        self._linear(attention.linear[2], f"{name}.cross_attention.output")

    def _feed_forward(self, feed_forward: Any, name: str) -> None:
        self._norm(feed_forward.layer_norm, f"{name}.around_feed_forward.norm")
        parts = 2 if self._section.gated else 1
        self._linear(feed_forward.linear_0, f"{name}.feed_forward.inner", parts=parts)
        if self._section.gated:
            self._linear(feed_forward.linear_0_noact, f"{name}.feed_forward.inner", part=1, parts=parts)
        self._linear(feed_forward.linear_1, f"{name}.feed_forward.output")
