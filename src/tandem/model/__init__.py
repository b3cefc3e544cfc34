"""The Transformer: tensors in, tensors out."""

from tandem.model.build import build_model, parameter_count
from tandem.model.cache import DecodingCache, Memory
from tandem.model.tokens import PackedTokens, PaddedTokens, Tokens
from tandem.model.transformer import Transformer

__all__ = [
    "DecodingCache",
    "Memory",
    "PackedTokens",
    "PaddedTokens",
    "Tokens",
    "Transformer",
    "build_model",
    "parameter_count",
]
