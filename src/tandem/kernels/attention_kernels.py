"""Attention in tiles: what a program does for one tile of one head."""

# Shapes: N query places, K width of a head, T = TILE places of a tile. Tables are those of tandem.kernels.side.

import triton
import triton.language as tl

from tandem.kernels.random import kept

__all__ = ["backward_kernel", "forward_kernel"]

# No loop moves what does not change to its front: most run once, and registers are what programs lack.

_NO_QUERY = tl.constexpr(-1)
_NO_KEY = tl.constexpr(-2)
_LEAST = tl.constexpr(-1e30)
"""Stands for minus infinity where a difference of two of them must be a number."""
_KEYS = tl.constexpr(4096)
"""More than a sentence has, so that no two elements share the bits that drop them."""


@triton.jit(do_not_specialize=["site", "threshold"])
def forward_kernel(
    query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
    tiles_ptr, counts_ptr, rows, query_sentences_ptr, key_sentences_ptr,
    query_stride, key_stride, value_stride, out_stride, places,
    log2_scale, upscale, seed_ptr, site, threshold,
    WITHIN: tl.constexpr, CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Outputs and log-sums of the query tiles that this program walks; their keys are those of their groups."""
    head = tl.program_id(0)
    walkers = tl.num_programs(1)
    start, stop, _, _, first_key, last_key = _load_tile(tiles_ptr, tl.program_id(1), rows, WITHIN)
    for tile in tl.range(tl.program_id(1), tl.load(counts_ptr), walkers, disable_licm=True):
        query_TK = _load_rows(query_ptr + head * K, query_stride, start, stop, K, TILE)
        query_T, query_sentence_T = _load_sentences(query_sentences_ptr, start, stop, _NO_QUERY, TILE)
        most_T = tl.full([TILE], _LEAST, tl.float32)
        sum_T = tl.zeros([TILE], tl.float32)
        out_TK = tl.zeros([TILE, K], tl.float32)
        for key in tl.range(first_key, stop if CAUSAL else last_key, TILE, disable_licm=True):
            key_TK = _load_rows(key_ptr + head * K, key_stride, key, last_key, K, TILE)
            value_TK = _load_rows(value_ptr + head * K, value_stride, key, last_key, K, TILE)
            key_T, key_sentence_T = _load_sentences(key_sentences_ptr, key, last_key, _NO_KEY, TILE)
            mask_TT = _mask(query_T, key_T, query_sentence_T, key_sentence_T, CAUSAL)
            score_TT = tl.where(mask_TT, _dot(query_TK, tl.trans(key_TK)) * log2_scale, _LEAST)
            next_T = tl.maximum(most_T, tl.max(score_TT, 1))
            shrink_T = tl.exp2(most_T - next_T)
            chance_TT = tl.where(mask_TT, tl.exp2(score_TT - next_T[:, None]), 0.0)
            sum_T = sum_T * shrink_T + tl.sum(chance_TT, 1)
            if HAS_DROPOUT:
                offsets_TT = _offsets(head * places + query_T, key_T - first_key)
                chance_TT = tl.where(kept(seed_ptr, site, offsets_TT, threshold), chance_TT, 0.0)
            out_TK = out_TK * shrink_T[:, None] + _dot(chance_TT.to(value_TK.dtype), value_TK)
            most_T = next_T
        # A query without a key says nothing, in numbers that later arithmetic can bear.
        has_key_T = sum_T > 0
        sum_T = tl.where(has_key_T, sum_T, 1.0)
        log_sum_T = tl.where(has_key_T, most_T + tl.log2(sum_T), 0.0)
        tl.store(log_sums_ptr + head * places + query_T, log_sum_T, mask=query_T < stop)
        _store_rows(out_ptr + head * K, out_stride, out_TK * (upscale / sum_T)[:, None], start, stop, K, TILE)
        start, stop, _, _, first_key, last_key = _load_tile(tiles_ptr, tile + walkers, rows, WITHIN)


@triton.jit(do_not_specialize=["site", "threshold"])
def backward_kernel(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
    grad_query_ptr, grad_key_ptr, grad_value_ptr,
    query_tiles_ptr, query_counts_ptr, query_rows, query_sentences_ptr,
    key_tiles_ptr, key_counts_ptr, key_rows, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride, out_stride,
    grad_query_stride, grad_key_stride, grad_value_stride, places,
    scale, log2_scale, upscale, seed_ptr, site, threshold,
    WITHIN: tl.constexpr, CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Gradients of the tiles that this program walks: queries of long groups first, then all keys."""
    head = tl.program_id(0)
    grad_out_ptr += head * K
    query_ptr += head * K
    key_ptr += head * K
    value_ptr += head * K
    out_ptr += head * K
    log_sums_ptr += head * places
    walker, walkers = tl.program_id(1), tl.num_programs(1)
    tiles = tl.load(key_counts_ptr)
    start, stop, first_key, last_key, first_query, last_query = _load_tile(
        key_tiles_ptr, walker, key_rows, WITHIN
    )
    for loose in tl.range(walker, tl.load(query_counts_ptr + 1), walkers, disable_licm=True):
        _long_queries(
            grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr, grad_query_ptr + head * K,
            query_tiles_ptr, loose, query_rows, query_sentences_ptr, key_sentences_ptr,
            grad_out_stride, query_stride, key_stride, value_stride, out_stride, grad_query_stride,
            head * places, scale, log2_scale, upscale, seed_ptr, site, threshold,
            WITHIN, CAUSAL, HAS_DROPOUT, K, TILE,
        )  # fmt: skip
    for tile in tl.range(walker, tiles, walkers, disable_licm=True):
        if _is_whole(first_key, last_key, first_query, last_query, TILE):
            _whole_group(
                grad_out_ptr, query_ptr, key_ptr, value_ptr, log_sums_ptr,
                grad_query_ptr + head * K, grad_key_ptr + head * K, grad_value_ptr + head * K,
                start, stop, first_query, last_query, query_sentences_ptr, key_sentences_ptr,
                grad_out_stride, query_stride, key_stride, value_stride,
                grad_query_stride, grad_key_stride, grad_value_stride,
                head * places, scale, log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, TILE,
            )  # fmt: skip
        else:
            _long_keys(
                grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
                grad_key_ptr + head * K, grad_value_ptr + head * K,
                start, stop, first_key, first_query, last_query, query_sentences_ptr, key_sentences_ptr,
                grad_out_stride, query_stride, key_stride, value_stride, out_stride,
                grad_key_stride, grad_value_stride,
                head * places, scale, log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, TILE,
            )  # fmt: skip
        start, stop, first_key, last_key, first_query, last_query = _load_tile(
            key_tiles_ptr, tile + walkers, key_rows, WITHIN
        )


@triton.jit
def _whole_group(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, log_sums_ptr, grad_query_ptr, grad_key_ptr, grad_value_ptr,
    start, stop, first_query, last_query, query_sentences_ptr, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride, grad_query_stride, grad_key_stride, grad_value_stride,
    before, scale, log2_scale, upscale, seed_ptr, site, threshold,
    CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """All gradients of a group that is one tile of keys and one of queries."""
    query_TK = _load_rows(query_ptr, query_stride, first_query, last_query, K, TILE)
    key_TK = _load_rows(key_ptr, key_stride, start, stop, K, TILE)
    grad_out_TK = _load_rows(grad_out_ptr, grad_out_stride, first_query, last_query, K, TILE)
    value_TK = _load_rows(value_ptr, value_stride, start, stop, K, TILE)
    key_T, key_sentence_T = _load_sentences(key_sentences_ptr, start, stop, _NO_KEY, TILE)
    query_T, query_sentence_T = _load_sentences(query_sentences_ptr, first_query, last_query, _NO_QUERY, TILE)
    log_sum_T = tl.load(log_sums_ptr + query_T, mask=query_T < last_query, other=0.0)
    chance_TT = _chances(
        query_TK, key_TK, query_T, key_T, query_sentence_T, key_sentence_T, log_sum_T, log2_scale, CAUSAL
    )
    dropped_TT = chance_TT
    if HAS_DROPOUT:
        stays_TT = kept(seed_ptr, site, _offsets(before + query_T, key_T - start), threshold)
        dropped_TT = tl.where(stays_TT, chance_TT * upscale, 0.0)
    grad_value_TK = _dot(tl.trans(dropped_TT.to(key_TK.dtype)), grad_out_TK)
    _store_rows(grad_value_ptr, grad_value_stride, grad_value_TK, start, stop, K, TILE)
    slope_TT = _dot(grad_out_TK, tl.trans(value_TK))
    if HAS_DROPOUT:
        slope_TT = tl.where(stays_TT, slope_TT * upscale, 0.0)
    mean_T = tl.sum(chance_TT * slope_TT, 1)
    grad_score_TT = (chance_TT * (slope_TT - mean_T[:, None])).to(key_TK.dtype)
    grad_key_TK = _dot(tl.trans(grad_score_TT), query_TK) * scale
    _store_rows(grad_key_ptr, grad_key_stride, grad_key_TK, start, stop, K, TILE)
    grad_query_TK = _dot(grad_score_TT, key_TK) * scale
    _store_rows(grad_query_ptr, grad_query_stride, grad_query_TK, first_query, last_query, K, TILE)


@triton.jit
def _long_keys(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr, grad_key_ptr, grad_value_ptr,
    start, stop, first_key, first_query, last_query, query_sentences_ptr, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride, out_stride, grad_key_stride, grad_value_stride,
    before, scale, log2_scale, upscale, seed_ptr, site, threshold,
    CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Gradients of a tile of keys and its values that face several tiles of queries, or none."""
    key_T, key_sentence_T = _load_sentences(key_sentences_ptr, start, stop, _NO_KEY, TILE)
    key_TK = _load_rows(key_ptr, key_stride, start, stop, K, TILE)
    value_TK = _load_rows(value_ptr, value_stride, start, stop, K, TILE)
    grad_key_TK = tl.zeros([TILE, K], tl.float32)
    grad_value_TK = tl.zeros([TILE, K], tl.float32)
    for query in tl.range(start if CAUSAL else first_query, last_query, TILE, disable_licm=True):
        query_T, query_sentence_T = _load_sentences(query_sentences_ptr, query, last_query, _NO_QUERY, TILE)
        query_TK = _load_rows(query_ptr, query_stride, query, last_query, K, TILE)
        grad_out_TK = _load_rows(grad_out_ptr, grad_out_stride, query, last_query, K, TILE)
        log_sum_T = tl.load(log_sums_ptr + query_T, mask=query_T < last_query, other=0.0)
        mean_T = _mean_slope(grad_out_TK, out_ptr, out_stride, query, last_query, K, TILE)
        chance_TT = _chances(
            query_TK, key_TK, query_T, key_T, query_sentence_T, key_sentence_T, log_sum_T, log2_scale, CAUSAL
        )
        dropped_TT = chance_TT
        slope_TT = _dot(grad_out_TK, tl.trans(value_TK))
        if HAS_DROPOUT:
            stays_TT = kept(seed_ptr, site, _offsets(before + query_T, key_T - first_key), threshold)
            dropped_TT = tl.where(stays_TT, chance_TT * upscale, 0.0)
            slope_TT = tl.where(stays_TT, slope_TT * upscale, 0.0)
        grad_value_TK += _dot(tl.trans(dropped_TT.to(key_TK.dtype)), grad_out_TK)
        grad_score_TT = (chance_TT * (slope_TT - mean_T[:, None])).to(key_TK.dtype)
        grad_key_TK += _dot(tl.trans(grad_score_TT), query_TK)
    _store_rows(grad_key_ptr, grad_key_stride, grad_key_TK * scale, start, stop, K, TILE)
    _store_rows(grad_value_ptr, grad_value_stride, grad_value_TK, start, stop, K, TILE)


@triton.jit
def _long_queries(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr, grad_query_ptr,
    tiles_ptr, tile, rows, query_sentences_ptr, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride, out_stride, grad_query_stride,
    before, scale, log2_scale, upscale, seed_ptr, site, threshold,
    WITHIN: tl.constexpr, CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries that face several tiles of keys, or none; else their keys' tile makes it."""
    start, stop, first_query, last_query, first_key, last_key = _load_tile(tiles_ptr, tile, rows, WITHIN)
    if not _is_whole(first_query, last_query, first_key, last_key, TILE):
        query_T, query_sentence_T = _load_sentences(query_sentences_ptr, start, stop, _NO_QUERY, TILE)
        query_TK = _load_rows(query_ptr, query_stride, start, stop, K, TILE)
        grad_out_TK = _load_rows(grad_out_ptr, grad_out_stride, start, stop, K, TILE)
        log_sum_T = tl.load(log_sums_ptr + query_T, mask=query_T < stop, other=0.0)
        mean_T = _mean_slope(grad_out_TK, out_ptr, out_stride, start, stop, K, TILE)
        grad_query_TK = tl.zeros([TILE, K], tl.float32)
        for key in tl.range(first_key, stop if CAUSAL else last_key, TILE, disable_licm=True):
            key_T, key_sentence_T = _load_sentences(key_sentences_ptr, key, last_key, _NO_KEY, TILE)
            key_TK = _load_rows(key_ptr, key_stride, key, last_key, K, TILE)
            value_TK = _load_rows(value_ptr, value_stride, key, last_key, K, TILE)
            chance_TT = _chances(
                query_TK,
                key_TK,
                query_T,
                key_T,
                query_sentence_T,
                key_sentence_T,
                log_sum_T,
                log2_scale,
                CAUSAL,
            )
            slope_TT = _dot(grad_out_TK, tl.trans(value_TK))
            if HAS_DROPOUT:
                stays_TT = kept(seed_ptr, site, _offsets(before + query_T, key_T - first_key), threshold)
                slope_TT = tl.where(stays_TT, slope_TT * upscale, 0.0)
            grad_score_TT = (chance_TT * (slope_TT - mean_T[:, None])).to(key_TK.dtype)
            grad_query_TK += _dot(grad_score_TT, key_TK)
        _store_rows(grad_query_ptr, grad_query_stride, grad_query_TK * scale, start, stop, K, TILE)


@triton.jit
def _load_tile(tiles_ptr, tile, rows, WITHIN: tl.constexpr):
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
def _is_whole(first, last, first_other, last_other, TILE: tl.constexpr):
    """Whether a group is one tile that looks at exactly one tile."""
    return (last - first <= TILE) & (last_other - first_other <= TILE) & (last_other > first_other)


@triton.jit
def _chances(
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
    score_TT = _dot(query_TK, tl.trans(key_TK)) * log2_scale - log_sum_T[:, None]
    mask_TT = _mask(query_T, key_T, query_sentence_T, key_sentence_T, CAUSAL)
    return tl.where(mask_TT, tl.exp2(score_TT), 0.0)


@triton.jit
def _mean_slope(grad_out_TK, out_ptr, out_stride, start, stop, K: tl.constexpr, TILE: tl.constexpr):
    """The loss's slope by a query's chances, weighed with them."""
    out_TK = _load_rows(out_ptr, out_stride, start, stop, K, TILE)
    return tl.sum(grad_out_TK.to(tl.float32) * out_TK.to(tl.float32), 1)


@triton.jit
def _mask(query_T, key_T, query_sentence_T, key_sentence_T, CAUSAL: tl.constexpr):
    mask_TT = query_sentence_T[:, None] == key_sentence_T[None, :]
    if CAUSAL:
        mask_TT = mask_TT & (query_T[:, None] >= key_T[None, :])
    return mask_TT


@triton.jit
def _offsets(query_T, key_T):
    """The number of each element of all heads' attention, for dropout."""
    return query_T.to(tl.uint32)[:, None] * _KEYS + key_T.to(tl.uint32)[None, :]


@triton.jit
def _dot(left, right):
    return tl.dot(left, right, input_precision="ieee")


@triton.jit
def _load_sentences(sentences_ptr, start, stop, nothing, TILE: tl.constexpr):
    """The places of a tile and their sentences, or `nothing` past its end."""
    place_T = start + tl.arange(0, TILE)
    return place_T, tl.load(sentences_ptr + place_T, mask=place_T < stop, other=nothing)


@triton.jit
def _load_rows(rows_ptr, stride, start, stop, K: tl.constexpr, TILE: tl.constexpr):
    place_T = start + tl.arange(0, TILE)
    at_TK = place_T[:, None] * stride + tl.arange(0, K)[None, :]
    return tl.load(rows_ptr + at_TK, mask=place_T[:, None] < stop, other=0.0)


@triton.jit
def _store_rows(rows_ptr, stride, rows_TK, start, stop, K: tl.constexpr, TILE: tl.constexpr):
    place_T = start + tl.arange(0, TILE)
    at_TK = place_T[:, None] * stride + tl.arange(0, K)[None, :]
    tl.store(rows_ptr + at_TK, rows_TK.to(rows_ptr.dtype.element_ty), mask=place_T[:, None] < stop)
