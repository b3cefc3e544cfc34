"""Who may look at whom: attention over padded rectangles and over packed rows."""

# Shapes: P sentences, T and S places of queries and keys, N and C places of packed queries and keys,
# M the most sentences of a packed row, H heads, K width of a head.

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from tandem.model.tokens import PackedTokens, PaddedTokens, Tokens

__all__ = ["Attend", "attend_across", "attend_within", "padding_mask"]


class Attend(Protocol):
    """Attention in the layout of one batch, made once for all layers."""

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, *, dropout: float) -> Tensor:
        """All tensors have their tokens' leading shape, then [H, K]; so has the result."""
        ...


def attend_within(tokens: Tokens, *, causal: bool) -> Attend:
    """Each token looks at its own sentence, or at what came before it."""
    match tokens:
        case PaddedTokens():
            # Padding stands at the end: no real token looks that far ahead, so causal needs no mask.
            mask = None if causal else padding_mask(tokens.ids, tokens.lengths)
            return _AttendPadded(mask, causal=causal)
        case PackedTokens():
            return _AttendPacked(tokens, tokens, causal=causal)


def attend_across(queries: Tokens, keys: Tokens) -> Attend:
    """Each query looks at the other language's sentence; both sides lie in the same layout."""
    match queries, keys:
        case PackedTokens(), PackedTokens():
            return _AttendPacked(queries, keys, causal=False)
        case PaddedTokens(), PaddedTokens():
            return _AttendPadded(padding_mask(keys.ids, keys.lengths), causal=False)
        case _:
            raise TypeError("Source and target must lie in the same layout.")


def padding_mask(ids_PS: Tensor, lengths_P: Tensor) -> Tensor | None:
    """[P, 1, 1, S] true where a sentence has a token; none where that is known to be everywhere."""
    width = ids_PS.shape[1]
    if not ids_PS.is_cuda and bool((lengths_P == width).all()):
        return None
    places_S = torch.arange(width, device=ids_PS.device)
    return (places_S < lengths_P[:, None])[:, None, None]


class _AttendPadded:
    def __init__(self, mask_P11S: Tensor | None, *, causal: bool) -> None:
        self._mask_P11S = mask_P11S
        self._causal = causal

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, *, dropout: float) -> Tensor:
        if query.is_cuda:
            # cuDNN's attention builds a plan for every new shape, which costs more than it saves.
            torch.backends.cuda.enable_cudnn_sdp(False)
        attended_PHTK = functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=self._mask_P11S,
            dropout_p=dropout,
            is_causal=self._causal,
        )
        return attended_PHTK.transpose(1, 2)


class _AttendPacked:
    def __init__(self, queries: PackedTokens, keys: PackedTokens, *, causal: bool) -> None:
        self._queries = queries
        self._keys = keys
        self._causal = causal
        self._longest = max(tokens.longest or len(tokens.ids) for tokens in (queries, keys))
        # The kernel writes sentences and nothing else: what is left of the rows counts as sentences too.
        more = -(-max(len(queries.ids), len(keys.ids)) // self._longest)
        self._query_bounds = self._with_tail(queries, more)
        self._key_bounds = self._with_tail(keys, more)
        self._mask_NC: Tensor | None = None

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, *, dropout: float) -> Tensor:
        if query.is_cuda and query.dtype in {torch.bfloat16, torch.float16} and not dropout:
            return self._flash(query, key, value)
        return self._masked(query, key, value, dropout=dropout)

    def _flash(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        # Only now: it brings torch's compiler with it, which takes as long to import as all the rest.
        from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415

        attended = varlen_attn(
            query,
            key,
            value,
            self._query_bounds,
            self._key_bounds,
            self._longest,
            self._longest,
            window_size=(-1, 0) if self._causal else (-1, -1),
        )
        assert isinstance(attended, Tensor)
        return attended

    def _with_tail(self, tokens: PackedTokens, more: int) -> Tensor:
        bounds = tokens.bounds
        ends = bounds[-1] + self._longest * torch.arange(
            1, more + 1, dtype=bounds.dtype, device=bounds.device
        )
        return torch.cat((bounds, ends.clamp(max=len(tokens.ids))))

    def _masked(self, query: Tensor, key: Tensor, value: Tensor, *, dropout: float) -> Tensor:
        if self._mask_NC is None:
            self._mask_NC = self._build_mask()
        attended_HNK = functional.scaled_dot_product_attention(
            query.transpose(0, 1)[None],
            key.transpose(0, 1)[None],
            value.transpose(0, 1)[None],
            attn_mask=self._mask_NC,
            dropout_p=dropout,
        )[0]
        return attended_HNK.transpose(0, 1)

    def _build_mask(self) -> Tensor:
        query_N, key_C = _sentence_of_places(self._queries), _sentence_of_places(self._keys)
        mask_NC = query_N[:, None] == key_C
        if self._causal:
            mask_NC = mask_NC.tril()
        # The tail of the row may face no key at all, and a row without keys has no softmax.
        return mask_NC | (query_N == len(self._queries.bounds) - 1)[:, None]


def _sentence_of_places(tokens: PackedTokens) -> Tensor:
    places = torch.arange(len(tokens.ids), device=tokens.ids.device, dtype=tokens.bounds.dtype)
    return torch.searchsorted(tokens.bounds[1:], places, right=True)
