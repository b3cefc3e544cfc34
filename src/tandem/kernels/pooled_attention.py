"""Attention of one new place a row over keys and values that lie anywhere in a pool, as decoding needs it.

Rows follow other rows from step to step. What they have said stays where it is: a table says for every row where the
keys and values of its past lie.
"""

# Shapes: R rows, H heads, K width of a head, C places of a pool, T places of the longest row, G sentences.

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["attend_pooled_past", "attend_pooled_source"]

_BLOCK = 32
"""Places of the past at a time: most sentences are not longer."""

_WARPS = 1
_LOG2_E = 1.4426950408889634


def attend_pooled_past(
    query_RHK: Tensor,
    key_RHK: Tensor,
    value_RHK: Tensor,
    *,
    keys_CHK: Tensor,
    values_CHK: Tensor,
    table_RT: Tensor,
    length_1: Tensor,
    free_1: Tensor,
) -> Tensor:
    """[R, H, K]: each row looks at its past and at itself; its own key and value go to place `free_1` + row.

    `table_RT` (int32) says where the first `length_1` keys and values of a row lie. The last two dimensions of all
    tensors are contiguous.
    """
    return _launch(
        query_RHK,
        keys_CHK,
        values_CHK,
        own=(key_RHK, value_RHK, free_1),
        table=table_RT,
        lengths=length_1,
        table_stride=table_RT.stride(0),
    )


def attend_pooled_source(
    query_RHK: Tensor, *, keys_CHK: Tensor, values_CHK: Tensor, starts_G: Tensor, lengths_G: Tensor, beam: int
) -> Tensor:
    """[R, H, K]: `beam` rows of each sentence look at its source, which lies in the pool from `starts_G` on.

    Starts and lengths are int32; no length is 0.
    """
    return _launch(query_RHK, keys_CHK, values_CHK, own=None, table=starts_G, lengths=lengths_G, beam=beam)


def _launch(
    query_RHK: Tensor,
    keys_CHK: Tensor,
    values_CHK: Tensor,
    *,
    own: tuple[Tensor, Tensor, Tensor] | None,
    table: Tensor,
    lengths: Tensor,
    table_stride: int = 0,
    beam: int = 1,
) -> Tensor:
    rows, heads, width = query_RHK.shape
    out_RHK = torch.empty((rows, heads, width), dtype=query_RHK.dtype, device=query_RHK.device)
    key_RHK, value_RHK, free_1 = own or (query_RHK, query_RHK, lengths)
    _attend[rows, heads](
        query_RHK,
        key_RHK,
        value_RHK,
        out_RHK,
        keys_CHK,
        values_CHK,
        table,
        lengths,
        free_1,
        query_RHK.stride(0),
        key_RHK.stride(0),
        value_RHK.stride(0),
        keys_CHK.stride(0),
        values_CHK.stride(0),
        table_stride,
        beam,
        _LOG2_E / math.sqrt(width),
        HAS_OWN=own is not None,
        H=heads,
        K=width,
        WIDE=triton.next_power_of_2(width),
        BLOCK=_BLOCK,
        num_warps=_WARPS,
    )
    return out_RHK


@triton.jit(do_not_specialize=["table_stride", "beam"])
def _attend(
    query_ptr, key_ptr, value_ptr, out_ptr, keys_ptr, values_ptr, table_ptr, lengths_ptr, free_ptr,
    query_stride, key_stride, value_stride, keys_stride, values_stride, table_stride, beam, log2_scale,
    HAS_OWN: tl.constexpr, H: tl.constexpr, K: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.arange(0, WIDE)
    is_column = columns < K
    inner = head * K + columns
    query = (
        tl.load(query_ptr + row * query_stride + inner, mask=is_column, other=0.0).to(tl.float32) * log2_scale
    )
    if HAS_OWN:
        length = tl.load(lengths_ptr)
        key = tl.load(key_ptr + row * key_stride + inner, mask=is_column, other=0.0)
        value = tl.load(value_ptr + row * value_stride + inner, mask=is_column, other=0.0)
        place = tl.load(free_ptr).to(tl.int64) + row
        tl.store(keys_ptr + place * keys_stride + inner, key, mask=is_column)
        tl.store(values_ptr + place * values_stride + inner, value, mask=is_column)
        highest = tl.sum(query * key.to(tl.float32), 0)
        total = 1.0
        mixed = value.to(tl.float32)
        first = row * table_stride
    else:
        sentence = row // beam
        length = tl.load(lengths_ptr + sentence)
        first = tl.load(table_ptr + sentence).to(tl.int64)
        highest = float("-inf")
        total = 0.0
        mixed = tl.zeros([WIDE], tl.float32)
    for begin in range(0, length, BLOCK):
        places = begin + tl.arange(0, BLOCK)
        is_past = places < length
        where = first + places
        if HAS_OWN:
            where = tl.load(table_ptr + where, mask=is_past, other=0).to(tl.int64)
        is_inside = is_past[:, None] & is_column[None, :]
        keys = tl.load(keys_ptr + where[:, None] * keys_stride + inner[None, :], mask=is_inside, other=0.0)
        values = tl.load(
            values_ptr + where[:, None] * values_stride + inner[None, :], mask=is_inside, other=0.0
        )
        scores = tl.where(is_past, tl.sum(query[None, :] * keys.to(tl.float32), 1), float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 0))
        shrink = tl.exp2(highest - higher)
        chances = tl.exp2(scores - higher)
        total = total * shrink + tl.sum(chances, 0)
        mixed = mixed * shrink + tl.sum(chances[:, None] * values.to(tl.float32), 0)
        highest = higher
    out = mixed / total
    tl.store(out_ptr + row * (H * K) + inner, out.to(out_ptr.dtype.element_ty), mask=is_column)
