"""What all kernels of attention do with a tile: find it, load it, mask it, multiply it, store it."""

# Shapes: K width of a head, T = TILE places of a tile. Tables are those of tandem.kernels.side.

import triton
import triton.language as tl

__all__ = [
    "chances",
    "dot",
    "fits",
    "load_near",
    "load_rows",
    "load_sentences",
    "load_tile",
    "mask",
    "mean_slope",
    "offsets",
    "store_rows",
]

_KEYS = tl.constexpr(4096)
"""More than a sentence has, so that no two elements share the bits that drop them."""


@triton.jit
def load_tile(tiles_ptr, tile, rows, WITHIN: tl.constexpr):
    """Start and stop of a tile, of its group, and of what that group looks at; nothing past the last row."""
    row_ptr, is_row = tiles_ptr + tile * 6, tile < rows
    start = tl.load(row_ptr, mask=is_row, other=0)
    stop = tl.load(row_ptr + 1, mask=is_row, other=0)
    first = tl.load(row_ptr + 2, mask=is_row, other=0)
    last = tl.load(row_ptr + 3, mask=is_row, other=0)
    first_other = first
    last_other = last
    if not WITHIN:
        first_other = tl.load(row_ptr + 4, mask=is_row, other=0)
        last_other = tl.load(row_ptr + 5, mask=is_row, other=0)
    return start, stop, first, last, first_other, last_other


@triton.jit
def fits(first, last, first_other, last_other, TILE: tl.constexpr):
    """Whether a group is one tile that looks at exactly one tile, if tiles are so wide."""
    return (last - first <= TILE) & (last_other - first_other <= TILE) & (last_other > first_other)


@triton.jit
def chances(
    query_TK,
    key_TK,
    query_T,
    key_T,
    query_sentence_T,
    key_sentence_T,
    log_sum_T,
    log2_scale,
    CAUSAL: tl.constexpr,
):
    """How much each query makes of each key."""
    score_TT = dot(query_TK, tl.trans(key_TK)) * log2_scale - log_sum_T[:, None]
    mask_TT = mask(query_T, key_T, query_sentence_T, key_sentence_T, CAUSAL)
    return tl.where(mask_TT, tl.exp2(score_TT), 0.0)


@triton.jit
def mean_slope(grad_out_TK, out_ptr, out_stride, start, stop, K: tl.constexpr, TILE: tl.constexpr):
    """The loss's slope by a query's chances, weighed with them."""
    out_TK = load_rows(out_ptr, out_stride, start, stop, K, TILE)
    return tl.sum(grad_out_TK.to(tl.float32) * out_TK.to(tl.float32), 1)


@triton.jit
def mask(query_T, key_T, query_sentence_T, key_sentence_T, CAUSAL: tl.constexpr):
    """Who may look at whom: those of one sentence, and if causal, at no later place."""
    mask_TT = query_sentence_T[:, None] == key_sentence_T[None, :]
    if CAUSAL:
        mask_TT = mask_TT & (query_T[:, None] >= key_T[None, :])
    return mask_TT


@triton.jit
def offsets(query_T, key_T):
    """The number of each element of all heads' attention, for dropout."""
    return query_T.to(tl.uint32)[:, None] * _KEYS + key_T.to(tl.uint32)[None, :]


@triton.jit
def dot(left, right):
    """A product that does not round its inputs."""
    return tl.dot(left, right, input_precision="ieee")


@triton.jit
def load_sentences(sentences_ptr, start, stop, nothing, TILE: tl.constexpr):
    """The places of a tile and their sentences, or `nothing` past its end."""
    place_T = start + tl.arange(0, TILE)
    return place_T, tl.load(sentences_ptr + place_T, mask=place_T < stop, other=nothing)


@triton.jit
def load_rows(rows_ptr, stride, start, stop, K: tl.constexpr, TILE: tl.constexpr):
    """Rows of a tile, and zeros past its end."""
    place_T = start + tl.arange(0, TILE)
    at_TK = place_T[:, None] * stride + tl.arange(0, K)[None, :]
    return tl.load(rows_ptr + at_TK, mask=place_T[:, None] < stop, other=0.0)


# A column that is added to numbers of elements, not to a pointer, leaves one register a row where loops run over heads.


@triton.jit
def load_near(rows_ptr, column, stride, start, stop, K: tl.constexpr, TILE: tl.constexpr):
    """Rows of a tile; past its end, its last one again, which costs less than zeros and is masked all the same."""
    place_T = tl.minimum(start + tl.arange(0, TILE), stop - 1)
    return tl.load(rows_ptr + ((place_T * stride + column)[:, None] + tl.arange(0, K)[None, :]))


@triton.jit
def store_rows(rows_ptr, column, stride, rows_TK, start, stop, K: tl.constexpr, TILE: tl.constexpr):
    """Write the rows of a tile, and none past its end."""
    place_T = start + tl.arange(0, TILE)
    at_TK = (place_T * stride + column)[:, None] + tl.arange(0, K)[None, :]
    tl.store(rows_ptr + at_TK, rows_TK.to(rows_ptr.dtype.element_ty), mask=place_T[:, None] < stop)
