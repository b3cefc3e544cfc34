"""What a token costs in the memory of a pass: a count of the tensors that the steps of the model hold for backward."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tandem.config import ModelSection

__all__ = ["Kept", "Way", "kept_bytes", "working_bytes"]

Way: TypeAlias = Literal["fused", "half", "full"]
"""Fused kernels in bf16 or fp16; plain operations in them; plain operations in fp32 or tf32."""

_FULL, _HALF = 4, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Bytes a token that are held when the loss is computed."""

    source: int
    target: int


def kept_bytes(model: ModelSection, way: Way) -> Kept:
    """What forward keeps until backward, the states and their gradient included."""
    each = _PerToken(model, way)
    ends = each.ends()
    return Kept(
        source=ends
        + model.encoder_layers * (2 * each.around() + each.within() + each.inner())
        + model.decoder_layers * each.seen(),
        target=ends
        + model.decoder_layers * (3 * each.around() + each.within() + each.across() + each.inner())
        + each.loss(),
    )


def working_bytes(model: ModelSection, way: Way) -> int:
    """The most that a sublayer of the decoder needs for a while in backward, for one token."""
    number = _FULL if way == "full" else _HALF
    inner = model.feed_forward * (3 if model.gated else 1) * (1 if way == "fused" else 2)
    feed_forward = number * (inner + 4 * model.width)
    # Queries and keys are turned in fp32: two products, their sum, and the halves that changed places.
    turned = 2 * model.width * (3 * _FULL + number) if model.positions == "rotary" else 0
    return max(feed_forward, turned)


class _PerToken:
    """Bytes of one sublayer or end of the model."""

    def __init__(self, model: ModelSection, way: Way) -> None:
        self._model = model
        self._way = way
        self._is_fused = way == "fused"
        self._number = _FULL if way == "full" else _HALF
        # Autocast leaves the residual stream and norms in fp32.
        self._stream = _HALF if self._is_fused else _FULL

    def around(self) -> int:
        """The sum before a norm, and the norm as the next product reads it."""
        return self._model.width * (self._stream + self._number) + self._mask(
            self._model.dropout, self._model.width
        )

    def within(self) -> int:
        """Queries, keys, values, what was looked up, and a logarithm a head."""
        # Fused kernels turn queries and keys in place.
        turned = 2 if self._model.positions == "rotary" and not self._is_fused else 0
        return (4 + turned) * self._model.width * self._number + self._log_sums()

    def across(self) -> int:
        """Queries, what was looked up, and a logarithm a head."""
        return 2 * self._model.width * self._number + self._log_sums()

    def seen(self) -> int:
        """Keys and values of a source token; autocast also rounds its state anew for every layer."""
        return (3 if self._way == "half" else 2) * self._model.width * self._number

    def inner(self) -> int:
        """What lies between the two maps of a feed-forward."""
        model = self._model
        if model.gated:
            copies = 3 if self._is_fused else 4
        else:
            # ReLU knows its gradient from its result, which is what the second map reads.
            copies = 1 if model.activation == "relu" and not model.activation_dropout else 2
        return copies * model.feed_forward * self._number + self._mask(
            model.activation_dropout, model.feed_forward
        )

    def ends(self) -> int:
        """Embeddings, positions, and the norm behind the last layer."""
        model = self._model
        norms = 2 if model.norm_place == "pre" else 1
        rotary = 2 * _FULL * (model.width // model.heads) if model.positions == "rotary" else 0
        return norms * model.width * self._stream + rotary + self._mask(model.dropout, model.width)

    def loss(self) -> int:
        """The gradient of a state, and beside it, in plain operations, the state once more and its place."""
        width = self._model.width
        if self._is_fused:
            return width * self._number
        waves = width * _FULL if self._model.positions == "sinusoidal" else 0
        return width * (self._number + _FULL) + waves

    def _log_sums(self) -> int:
        return _FULL * self._model.heads

    def _mask(self, share: float, width: int) -> int:
        """Fused kernels draw a mask again instead of keeping it."""
        return width if share and not self._is_fused else 0
