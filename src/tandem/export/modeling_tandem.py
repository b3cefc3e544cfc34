"""A Tandem model for Hugging Face's transformers: this file lies beside the weights of models that only it computes."""

# It stands alone, since it runs where Tandem is not installed: the network is that of tandem.model, under the same
# names. Shapes: N sentences, S source and T target places, D width, F feed-forward width, H heads, K width of a head.

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

__all__ = ["TandemConfig", "TandemForTranslation"]

_NOTHING = "Give input_ids or encoder_outputs, and decoder_input_ids or labels."
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
}


class TandemConfig(PretrainedConfig):
    """The shape of the network; `shape` has the keys of a recipe's model section."""

    model_type = "tandem"
    is_encoder_decoder = True
    keys_to_ignore_at_inference = ("past_key_values",)

    def __init__(self, *, shape: dict[str, Any] | None = None, vocab_size: int = 1, **said: Any) -> None:
        self.shape, self.vocab_size = shape or {}, vocab_size
        self.num_hidden_layers = self.shape.get("decoder_layers", 1)
        self.hidden_size, self.num_attention_heads = self.shape.get("width", 2), self.shape.get("heads", 1)
        super().__init__(**{"is_encoder_decoder": True, "tie_word_embeddings": False, **said})


class _SelfAttention(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        self.heads, self.dropout = shape["heads"], shape["attention_dropout"]
        self.query_key_value = nn.Linear(shape["width"], 3 * shape["width"])
        self.output = nn.Linear(shape["width"], shape["width"])

    def forward(
        self,
        x_NTD: Tensor,
        *,
        mask: Tensor | None,
        turn: Callable[[Tensor], Tensor],
        keep: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
    ) -> Tensor:
        mixed = self.query_key_value(x_NTD).unflatten(-1, (3, self.heads, -1)).transpose(1, 3)
        query, key, value = mixed.unbind(2)
        query, key = turn(query), turn(key)
        if keep is not None:
            key, value = keep(key, value)
        return _attended(self, query, key, value, mask)


class _CrossAttention(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        self.heads, self.dropout = shape["heads"], shape["attention_dropout"]
        self.query = nn.Linear(shape["width"], shape["width"])
        self.key_value = nn.Linear(shape["width"], 2 * shape["width"])
        self.output = nn.Linear(shape["width"], shape["width"])

    def keys_and_values(self, memory_NSD: Tensor) -> tuple[Tensor, Tensor]:
        mixed = self.key_value(memory_NSD).unflatten(-1, (2, self.heads, -1)).transpose(1, 3)
        key, value = mixed.unbind(2)
        return key, value

    def forward(self, x_NTD: Tensor, *, seen: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        query = self.query(x_NTD).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return _attended(self, query, *seen, mask)


def _attended(
    part: "_SelfAttention | _CrossAttention", query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Tensor:
    dropout = part.dropout if part.training else 0.0
    attended_NHTK = functional.scaled_dot_product_attention(query, key, value, mask, dropout_p=dropout)
    output: Tensor = part.output(attended_NHTK.transpose(1, 2).flatten(-2))
    return output


class _FeedForward(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        self.activation, self.gated = _ACTIVATIONS[shape["activation"]], shape["gated"]
        self.dropout = shape["activation_dropout"]
        self.inner = nn.Linear(shape["width"], shape["feed_forward"] * (2 if self.gated else 1))
        self.output = nn.Linear(shape["feed_forward"], shape["width"])

    def forward(self, x_NTD: Tensor) -> Tensor:
        inner_NTF: Tensor = self.inner(x_NTD)
        if self.gated:
            active_NTF, gate_NTF = inner_NTF.chunk(2, dim=-1)
            inner_NTF = self.activation(active_NTF) * gate_NTF
        else:
            inner_NTF = self.activation(inner_NTF)
        output: Tensor = self.output(functional.dropout(inner_NTF, self.dropout, self.training))
        return output


class _Residual(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        self.before, self.dropout = shape["norm_place"] == "pre", shape["dropout"]
        self.norm = _norm(shape)

    def forward(self, x_NTD: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        changed = sublayer(self.norm(x_NTD) if self.before else x_NTD)
        summed = x_NTD + functional.dropout(changed, self.dropout, self.training)
        result: Tensor = summed if self.before else self.norm(summed)
        return result


def _norm(shape: dict[str, Any]) -> nn.Module:
    return (
        nn.RMSNorm(shape["width"], eps=1e-6)
        if shape["norm"] == "rms"
        else nn.LayerNorm(shape["width"], eps=1e-5)
    )


class _Layer(nn.Module):
    """A layer of the encoder, or of the decoder, which looks at the source as well."""

    def __init__(self, shape: dict[str, Any], *, is_decoder: bool) -> None:
        super().__init__()
        self.attention, self.feed_forward = _SelfAttention(shape), _FeedForward(shape)
        self.around_attention, self.around_feed_forward = _Residual(shape), _Residual(shape)
        if is_decoder:
            self.cross_attention, self.around_cross_attention = _CrossAttention(shape), _Residual(shape)


class _Network(nn.Module):
    def __init__(self, config: TandemConfig) -> None:
        super().__init__()
        self.shape = shape = config.shape
        rows = (config.vocab_size, shape["width"])
        self.target_embedding = nn.Parameter(torch.empty(rows))
        if shape["tied"] != "all":
            self.source_embedding = nn.Parameter(torch.empty(rows))
        if shape["tied"] == "none":
            self.output_projection = nn.Parameter(torch.empty(rows))
        self.encoder = nn.ModuleList(_Layer(shape, is_decoder=False) for _ in range(shape["encoder_layers"]))
        self.decoder = nn.ModuleList(_Layer(shape, is_decoder=True) for _ in range(shape["decoder_layers"]))
        is_pre = shape["norm_place"] == "pre"
        self.encoder_norm = _norm(shape) if is_pre else nn.Identity()
        self.decoder_norm = _norm(shape) if is_pre else nn.Identity()

    def encode(self, ids_NS: Tensor, attention_mask: Tensor | None) -> Tensor:
        weight = self.target_embedding if self.shape["tied"] == "all" else self.source_embedding
        x_NSD, turn = self._embed(ids_NS, weight, first=0)
        mask = _source_mask(attention_mask)
        layer: Any
        for layer in self.encoder:
            x_NSD = layer.around_attention(x_NSD, lambda x, of=layer: of.attention(x, mask=mask, turn=turn))
            x_NSD = layer.around_feed_forward(x_NSD, layer.feed_forward)
        memory_NSD: Tensor = self.encoder_norm(x_NSD)
        return memory_NSD

    def decode(
        self, ids_NT: Tensor, memory_NSD: Tensor, attention_mask: Tensor | None, cache: Any | None
    ) -> Tensor:
        past = 0 if cache is None else int(cache.get_seq_length())
        x_NTD, turn = self._embed(ids_NT, self.target_embedding, first=past)
        places = torch.arange(past + ids_NT.shape[1], device=ids_NT.device)
        causal, across = places[past:, None] >= places, _source_mask(attention_mask)
        layer: Any
        for number, layer in enumerate(self.decoder):
            seen, keep = _seen(layer, number, memory_NSD, cache), _keeper(number, cache)
            x_NTD = layer.around_attention(
                x_NTD, lambda x, of=layer, keep=keep: of.attention(x, mask=causal, turn=turn, keep=keep)
            )
            x_NTD = layer.around_cross_attention(
                x_NTD, lambda x, of=layer, seen=seen: of.cross_attention(x, seen=seen, mask=across)
            )
            x_NTD = layer.around_feed_forward(x_NTD, layer.feed_forward)
        weight = self.output_projection if self.shape["tied"] == "none" else self.target_embedding
        return functional.linear(self.decoder_norm(x_NTD), weight)

    def _embed(self, ids: Tensor, weight: Tensor, *, first: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The embedded pieces, and how queries and keys turn at their places."""
        width, heads = self.shape["width"], self.shape["heads"]
        x_NTD = functional.embedding(ids, weight) * math.sqrt(width)
        places = torch.arange(first, first + ids.shape[1], device=ids.device)
        is_rotary = self.shape["positions"] == "rotary"
        half = width // heads // 2 if is_rotary else width // 2
        steps = half if is_rotary else max(half - 1, 1)
        exponents = torch.arange(half, device=ids.device, dtype=torch.float32) / steps
        angles = places.float().unsqueeze(-1) * torch.exp(exponents * -math.log(10_000.0))
        turn: Callable[[Tensor], Tensor] = _unturned
        if is_rotary:
            angles = torch.cat((angles, angles), dim=-1)
            turn = _turning(angles.cos(), angles.sin())
        else:
            waves = torch.cat((angles.sin(), angles.cos()), dim=-1)
            x_NTD = x_NTD + functional.pad(waves, (0, width % 2)).to(x_NTD.dtype)
        return functional.dropout(x_NTD, self.shape["dropout"], self.training), turn


def _unturned(heads_NHTK: Tensor) -> Tensor:
    return heads_NHTK


def _turning(cosines_TK: Tensor, sines_TK: Tensor) -> Callable[[Tensor], Tensor]:
    def turn(heads_NHTK: Tensor) -> Tensor:
        first, second = heads_NHTK.chunk(2, dim=-1)
        turned_NHTK = torch.cat((-second, first), dim=-1)
        return (heads_NHTK * cosines_TK + turned_NHTK * sines_TK).to(heads_NHTK.dtype)

    return turn


def _source_mask(attention_mask: Tensor | None) -> Tensor | None:
    return None if attention_mask is None else attention_mask[:, None, None, :].bool()


def _seen(layer: Any, number: int, memory_NSD: Tensor, cache: Any | None) -> tuple[Tensor, Tensor]:
    """Keys and values of the source for a layer, computed once for a sentence where there is a cache."""
    if cache is not None and cache.is_updated.get(number):
        kept = cache.cross_attention_cache.layers[number]
        return kept.keys, kept.values
    seen: tuple[Tensor, Tensor] = layer.cross_attention.keys_and_values(memory_NSD)
    if cache is not None:
        cache.is_updated[number] = True
        seen = cache.cross_attention_cache.update(*seen, number)
    return seen


def _keeper(number: int, cache: Any | None) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None:
    if cache is None:
        return None

    def keep(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        every: tuple[Tensor, Tensor] = cache.self_attention_cache.update(key, value, number)
        return every

    return keep


class _Encoder:
    """The side that reads, as `generate` calls it."""

    main_input_name = "input_ids"

    def __init__(self, network: _Network) -> None:
        self._network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> Any:
        return BaseModelOutput(last_hidden_state=self._network.encode(input_ids, attention_mask))

    __call__ = forward


class TandemForTranslation(PreTrainedModel, GenerationMixin):
    """Source pieces in, a distribution over the next target piece out."""

    config_class = TandemConfig
    main_input_name = "input_ids"
    base_model_prefix = ""
    _supports_sdpa = True

    def __init__(self, config: TandemConfig) -> None:
        super().__init__(config)
        self.network = _Network(config)
        self.post_init()

    def get_encoder(self, *_: Any, **__: Any) -> _Encoder:
        """What reads the source."""
        return _Encoder(self.network)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        labels: Tensor | None = None,
        **_: Any,
    ) -> Any:
        """Logits [N, T, V]; with `labels` (-100 is not counted) also the mean cross-entropy."""
        if decoder_input_ids is None:
            decoder_input_ids = self._begun(labels)
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError(_NOTHING)
            encoder_outputs = self.get_encoder()(input_ids, attention_mask)
        memory_NSD = encoder_outputs[0]
        cache = past_key_values if isinstance(past_key_values, EncoderDecoderCache) else None
        logits = self.network.decode(decoder_input_ids, memory_NSD, attention_mask, cache)
        loss = None if labels is None else functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(
            loss=loss, logits=logits, past_key_values=cache, encoder_last_hidden_state=memory_NSD
        )

    def _begun(self, labels: Tensor | None) -> Tensor:
        """Labels behind the mark that translations begin with."""
        if labels is None:
            raise ValueError(_NOTHING)
        begun = labels.roll(1, dims=-1).masked_fill(labels.roll(1, dims=-1) == -100, self.config.pad_token_id)
        begun[:, 0] = self.config.decoder_start_token_id
        return begun
