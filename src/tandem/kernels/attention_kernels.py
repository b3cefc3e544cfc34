"""Attention in tiles: what programs do for groups that fit one tile, and for longer ones."""

# Shapes: N query places, K width of a head, T = TILE places of a tile. Tables are those of tandem.kernels.side.

import triton
import triton.language as tl

from tandem.kernels.attention_tiles import (
    chances,
    dot,
    fits,
    load_near,
    load_rows,
    load_sentences,
    load_tile,
    mask,
    mean_slope,
    offsets,
    store_rows,
)
from tandem.kernels.random import kept, kept_by, keys_of

__all__ = ["backward_kernel", "forward_kernel", "long_backward_kernel", "long_forward_kernel"]

# No loop moves what does not change to its front: most run once, and registers are what programs lack.

_NO_QUERY = tl.constexpr(-1)
_NO_KEY = tl.constexpr(-2)
_LEAST = tl.constexpr(-1e30)
"""Stands for minus infinity where a difference of two of them must be a number."""


@triton.jit(do_not_specialize=["site", "threshold"])
def forward_kernel(
    query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
    tiles_ptr, counts_ptr, rows, query_sentences_ptr, key_sentences_ptr,
    query_stride, key_stride, value_stride, out_stride, places,
    log2_scale, upscale, seed_ptr, site, threshold,
    WITHIN: tl.constexpr, CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
    HEADS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Outputs and log-sums of groups that are one tile looking at one, for several heads in turn."""
    first_head = tl.program_id(0) * HEADS
    walkers = tl.num_programs(1)
    for tile in tl.range(tl.program_id(1), tl.load(counts_ptr), walkers, disable_licm=True):
        start, stop, first, last, first_key, last_key = load_tile(tiles_ptr, tile, rows, WITHIN)
        if fits(first, last, first_key, last_key, TILE):
            _forward_whole(
                query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
                start, stop, first_key, last_key, first_head, query_sentences_ptr, key_sentences_ptr,
                query_stride, key_stride, value_stride, out_stride, places,
                log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, TILE, HEADS, STAGES,
            )  # fmt: skip


@triton.jit(do_not_specialize=["site", "threshold"])
def long_forward_kernel(
    query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
    tiles_ptr, counts_ptr, rows, query_sentences_ptr, key_sentences_ptr,
    query_stride, key_stride, value_stride, out_stride, places,
    log2_scale, upscale, seed_ptr, site, threshold,
    WITHIN: tl.constexpr, CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """The same for all other groups: those that fit a wide tile as a whole, longer ones tile by tile."""
    head = tl.program_id(0)
    walkers = tl.num_programs(1)
    for tile in tl.range(tl.program_id(1), tl.load(counts_ptr + 1), walkers, disable_licm=True):
        start, stop, first, last, first_key, last_key = load_tile(tiles_ptr, tile, rows, WITHIN)
        if not fits(first, last, first_key, last_key, WIDE):
            _forward_long(
                query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
                start, stop, first_key, last_key, head, query_sentences_ptr, key_sentences_ptr,
                query_stride, key_stride, value_stride, out_stride, places,
                log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, TILE,
            )  # fmt: skip
        elif (start == first) & (not fits(first, last, first_key, last_key, TILE)):
            _forward_whole(
                query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
                first, last, first_key, last_key, head, query_sentences_ptr, key_sentences_ptr,
                query_stride, key_stride, value_stride, out_stride, places,
                log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, WIDE, 1, 1,
            )  # fmt: skip


@triton.jit(do_not_specialize=["site", "threshold"])
def backward_kernel(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, log_sums_ptr, grad_query_ptr, grad_key_ptr, grad_value_ptr,
    tiles_ptr, counts_ptr, rows, query_sentences_ptr, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride,
    grad_query_stride, grad_key_stride, grad_value_stride, places,
    scale, log2_scale, upscale, seed_ptr, site, threshold,
    WITHIN: tl.constexpr, CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
    HEADS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """All gradients of groups that are one tile of keys and one of queries, for several heads in turn."""
    first_head = tl.program_id(0) * HEADS
    walkers = tl.num_programs(1)
    for tile in tl.range(tl.program_id(1), tl.load(counts_ptr), walkers, disable_licm=True):
        start, stop, first, last, first_query, last_query = load_tile(tiles_ptr, tile, rows, WITHIN)
        if fits(first, last, first_query, last_query, TILE):
            _backward_whole(
                grad_out_ptr, query_ptr, key_ptr, value_ptr, log_sums_ptr,
                grad_query_ptr, grad_key_ptr, grad_value_ptr,
                start, stop, first_query, last_query, first_head, query_sentences_ptr, key_sentences_ptr,
                grad_out_stride, query_stride, key_stride, value_stride,
                grad_query_stride, grad_key_stride, grad_value_stride, places,
                scale, log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, TILE, HEADS, STAGES,
            )  # fmt: skip


@triton.jit(do_not_specialize=["site", "threshold"])
def long_backward_kernel(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
    grad_query_ptr, grad_key_ptr, grad_value_ptr,
    query_tiles_ptr, query_counts_ptr, query_rows, query_sentences_ptr,
    key_tiles_ptr, key_counts_ptr, key_rows, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride, out_stride,
    grad_query_stride, grad_key_stride, grad_value_stride, places,
    scale, log2_scale, upscale, seed_ptr, site, threshold,
    WITHIN: tl.constexpr, CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Gradients of all other groups: keys with what fits a wide tile as a whole, then queries of longer groups."""
    head = tl.program_id(0)
    walker, walkers = tl.program_id(1), tl.num_programs(1)
    for tile in tl.range(walker, tl.load(key_counts_ptr + 1), walkers, disable_licm=True):
        start, stop, first, last, first_query, last_query = load_tile(key_tiles_ptr, tile, key_rows, WITHIN)
        if not fits(first, last, first_query, last_query, WIDE):
            _long_keys(
                grad_out_ptr + head * K, query_ptr + head * K, key_ptr + head * K, value_ptr + head * K,
                out_ptr + head * K, log_sums_ptr + head * places, grad_key_ptr + head * K, grad_value_ptr + head * K,
                start, stop, first, first_query, last_query, query_sentences_ptr, key_sentences_ptr,
                grad_out_stride, query_stride, key_stride, value_stride, out_stride,
                grad_key_stride, grad_value_stride,
                head * places, scale, log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, TILE,
            )  # fmt: skip
        elif (start == first) & (not fits(first, last, first_query, last_query, TILE)):
            _backward_whole(
                grad_out_ptr, query_ptr, key_ptr, value_ptr, log_sums_ptr,
                grad_query_ptr, grad_key_ptr, grad_value_ptr,
                first, last, first_query, last_query, head, query_sentences_ptr, key_sentences_ptr,
                grad_out_stride, query_stride, key_stride, value_stride,
                grad_query_stride, grad_key_stride, grad_value_stride, places,
                scale, log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, WIDE, 1, 1,
            )  # fmt: skip
    for tile in tl.range(walker, tl.load(query_counts_ptr + 1), walkers, disable_licm=True):
        start, stop, first, last, first_key, last_key = load_tile(query_tiles_ptr, tile, query_rows, WITHIN)
        if not fits(first, last, first_key, last_key, WIDE):
            _long_queries(
                grad_out_ptr + head * K, query_ptr + head * K, key_ptr + head * K, value_ptr + head * K,
                out_ptr + head * K, log_sums_ptr + head * places, grad_query_ptr + head * K,
                start, stop, first_key, last_key, query_sentences_ptr, key_sentences_ptr,
                grad_out_stride, query_stride, key_stride, value_stride, out_stride, grad_query_stride,
                head * places, scale, log2_scale, upscale, seed_ptr, site, threshold,
                CAUSAL, HAS_DROPOUT, K, TILE,
            )  # fmt: skip


@triton.jit
def _forward_whole(
    query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
    start, stop, first_key, last_key, first_head, query_sentences_ptr, key_sentences_ptr,
    query_stride, key_stride, value_stride, out_stride, places,
    log2_scale, upscale, seed_ptr, site, threshold,
    CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
    HEADS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A group of one tile of queries that face one of keys: the softmax needs no second look."""
    query_T, query_sentence_T = load_sentences(query_sentences_ptr, start, stop, _NO_QUERY, TILE)
    key_T, key_sentence_T = load_sentences(key_sentences_ptr, first_key, last_key, _NO_KEY, TILE)
    if HAS_DROPOUT:
        first, second = keys_of(seed_ptr, site)
    for step in tl.range(0, HEADS, num_stages=STAGES, disable_licm=True):
        head = first_head + step
        query_TK = load_near(query_ptr, head * K, query_stride, start, stop, K, TILE)
        key_TK = load_near(key_ptr, head * K, key_stride, first_key, last_key, K, TILE)
        value_TK = load_near(value_ptr, head * K, value_stride, first_key, last_key, K, TILE)
        mask_TT = mask(query_T, key_T, query_sentence_T, key_sentence_T, CAUSAL)
        score_TT = tl.where(mask_TT, dot(query_TK, tl.trans(key_TK)), _LEAST)
        most_T = tl.max(score_TT, 1)
        has_key_T = most_T > _LEAST
        most_T = most_T * log2_scale
        chance_TT = tl.exp2(score_TT * log2_scale - most_T[:, None])
        sum_T = tl.sum(chance_TT, 1)
        if HAS_DROPOUT:
            offsets_TT = offsets(head * places + query_T, key_T - first_key)
            chance_TT = tl.where(kept_by(first, second, offsets_TT, threshold), chance_TT, 0.0)
        out_TK = dot(chance_TT.to(value_TK.dtype), value_TK)
        log_sum_T = tl.where(has_key_T, most_T + tl.log2(sum_T), 0.0)
        tl.store(log_sums_ptr + head * places + query_T, log_sum_T, mask=query_T < stop)
        share_T = tl.where(has_key_T, upscale / sum_T, 0.0)
        store_rows(out_ptr, head * K, out_stride, out_TK * share_T[:, None], start, stop, K, TILE)


@triton.jit
def _forward_long(
    query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr,
    start, stop, first_key, last_key, head, query_sentences_ptr, key_sentences_ptr,
    query_stride, key_stride, value_stride, out_stride, places,
    log2_scale, upscale, seed_ptr, site, threshold,
    CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """A tile of queries that face several tiles of keys, or none."""
    query_TK = load_rows(query_ptr + head * K, query_stride, start, stop, K, TILE)
    query_T, query_sentence_T = load_sentences(query_sentences_ptr, start, stop, _NO_QUERY, TILE)
    most_T = tl.full([TILE], _LEAST, tl.float32)
    sum_T = tl.zeros([TILE], tl.float32)
    out_TK = tl.zeros([TILE, K], tl.float32)
    for key in tl.range(first_key, stop if CAUSAL else last_key, TILE, disable_licm=True):
        key_TK = load_rows(key_ptr + head * K, key_stride, key, last_key, K, TILE)
        value_TK = load_rows(value_ptr + head * K, value_stride, key, last_key, K, TILE)
        key_T, key_sentence_T = load_sentences(key_sentences_ptr, key, last_key, _NO_KEY, TILE)
        mask_TT = mask(query_T, key_T, query_sentence_T, key_sentence_T, CAUSAL)
        score_TT = tl.where(mask_TT, dot(query_TK, tl.trans(key_TK)) * log2_scale, _LEAST)
        next_T = tl.maximum(most_T, tl.max(score_TT, 1))
        shrink_T = tl.exp2(most_T - next_T)
        chance_TT = tl.where(mask_TT, tl.exp2(score_TT - next_T[:, None]), 0.0)
        sum_T = sum_T * shrink_T + tl.sum(chance_TT, 1)
        if HAS_DROPOUT:
            offsets_TT = offsets(head * places + query_T, key_T - first_key)
            chance_TT = tl.where(kept(seed_ptr, site, offsets_TT, threshold), chance_TT, 0.0)
        out_TK = out_TK * shrink_T[:, None] + dot(chance_TT.to(value_TK.dtype), value_TK)
        most_T = next_T
    # A query without a key says nothing, in numbers that later arithmetic can bear.
    has_key_T = sum_T > 0
    sum_T = tl.where(has_key_T, sum_T, 1.0)
    log_sum_T = tl.where(has_key_T, most_T + tl.log2(sum_T), 0.0)
    tl.store(log_sums_ptr + head * places + query_T, log_sum_T, mask=query_T < stop)
    store_rows(out_ptr, head * K, out_stride, out_TK * (upscale / sum_T)[:, None], start, stop, K, TILE)


@triton.jit
def _backward_whole(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, log_sums_ptr, grad_query_ptr, grad_key_ptr, grad_value_ptr,
    start, stop, first_query, last_query, first_head, query_sentences_ptr, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride,
    grad_query_stride, grad_key_stride, grad_value_stride, places,
    scale, log2_scale, upscale, seed_ptr, site, threshold,
    CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
    HEADS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """All gradients of a group that is one tile of keys and one of queries."""
    log2_upscale = tl.log2(upscale)
    key_T, key_sentence_T = load_sentences(key_sentences_ptr, start, stop, _NO_KEY, TILE)
    query_T, query_sentence_T = load_sentences(query_sentences_ptr, first_query, last_query, _NO_QUERY, TILE)
    if HAS_DROPOUT:
        first, second = keys_of(seed_ptr, site)
    for step in tl.range(0, HEADS, num_stages=STAGES, disable_licm=True):
        head = first_head + step
        query_TK = load_near(query_ptr, head * K, query_stride, first_query, last_query, K, TILE)
        key_TK = load_near(key_ptr, head * K, key_stride, start, stop, K, TILE)
        grad_out_TK = load_near(grad_out_ptr, head * K, grad_out_stride, first_query, last_query, K, TILE)
        value_TK = load_near(value_ptr, head * K, value_stride, start, stop, K, TILE)
        log_sum_T = tl.load(log_sums_ptr + head * places + query_T, mask=query_T < last_query, other=0.0)
        chance_TT = chances(
            query_TK, key_TK, query_T, key_T, query_sentence_T, key_sentence_T,
            log_sum_T - log2_upscale, log2_scale, CAUSAL,
        )  # fmt: skip
        dropped_TT = chance_TT
        if HAS_DROPOUT:
            offsets_TT = offsets(head * places + query_T, key_T - start)
            dropped_TT = tl.where(kept_by(first, second, offsets_TT, threshold), chance_TT, 0.0)
        slope_TT = dot(grad_out_TK, tl.trans(value_TK))
        # All that is fp32 is over before the next product begins, so that registers do.
        given_TT = dropped_TT.to(key_TK.dtype)
        gain_TT = dropped_TT * slope_TT
        mean_T = tl.sum(gain_TT, 1) * (scale / upscale)
        grad_score_TT = (gain_TT * scale - chance_TT * mean_T[:, None]).to(key_TK.dtype)
        grad_value_TK = dot(tl.trans(given_TT), grad_out_TK)
        store_rows(grad_value_ptr, head * K, grad_value_stride, grad_value_TK, start, stop, K, TILE)
        grad_key_TK = dot(tl.trans(grad_score_TT), query_TK)
        store_rows(grad_key_ptr, head * K, grad_key_stride, grad_key_TK, start, stop, K, TILE)
        grad_query_TK = dot(grad_score_TT, key_TK)
        store_rows(
            grad_query_ptr, head * K, grad_query_stride, grad_query_TK, first_query, last_query, K, TILE
        )


@triton.jit
def _long_keys(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr, grad_key_ptr, grad_value_ptr,
    start, stop, first_key, first_query, last_query, query_sentences_ptr, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride, out_stride, grad_key_stride, grad_value_stride,
    before, scale, log2_scale, upscale, seed_ptr, site, threshold,
    CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Gradients of a tile of keys and its values that face several tiles of queries, or none."""
    key_T, key_sentence_T = load_sentences(key_sentences_ptr, start, stop, _NO_KEY, TILE)
    key_TK = load_rows(key_ptr, key_stride, start, stop, K, TILE)
    value_TK = load_rows(value_ptr, value_stride, start, stop, K, TILE)
    grad_key_TK = tl.zeros([TILE, K], tl.float32)
    grad_value_TK = tl.zeros([TILE, K], tl.float32)
    for query in tl.range(start if CAUSAL else first_query, last_query, TILE, disable_licm=True):
        query_T, query_sentence_T = load_sentences(query_sentences_ptr, query, last_query, _NO_QUERY, TILE)
        query_TK = load_rows(query_ptr, query_stride, query, last_query, K, TILE)
        grad_out_TK = load_rows(grad_out_ptr, grad_out_stride, query, last_query, K, TILE)
        log_sum_T = tl.load(log_sums_ptr + query_T, mask=query_T < last_query, other=0.0)
        mean_T = mean_slope(grad_out_TK, out_ptr, out_stride, query, last_query, K, TILE)
        chance_TT = chances(
            query_TK, key_TK, query_T, key_T, query_sentence_T, key_sentence_T, log_sum_T, log2_scale, CAUSAL
        )
        dropped_TT = chance_TT
        slope_TT = dot(grad_out_TK, tl.trans(value_TK))
        if HAS_DROPOUT:
            stays_TT = kept(seed_ptr, site, offsets(before + query_T, key_T - first_key), threshold)
            dropped_TT = tl.where(stays_TT, chance_TT * upscale, 0.0)
            slope_TT = tl.where(stays_TT, slope_TT * upscale, 0.0)
        grad_value_TK += dot(tl.trans(dropped_TT.to(key_TK.dtype)), grad_out_TK)
        grad_score_TT = (chance_TT * (slope_TT - mean_T[:, None])).to(key_TK.dtype)
        grad_key_TK += dot(tl.trans(grad_score_TT), query_TK)
    store_rows(grad_key_ptr, 0, grad_key_stride, grad_key_TK * scale, start, stop, K, TILE)
    store_rows(grad_value_ptr, 0, grad_value_stride, grad_value_TK, start, stop, K, TILE)


@triton.jit
def _long_queries(
    grad_out_ptr, query_ptr, key_ptr, value_ptr, out_ptr, log_sums_ptr, grad_query_ptr,
    start, stop, first_key, last_key, query_sentences_ptr, key_sentences_ptr,
    grad_out_stride, query_stride, key_stride, value_stride, out_stride, grad_query_stride,
    before, scale, log2_scale, upscale, seed_ptr, site, threshold,
    CAUSAL: tl.constexpr, HAS_DROPOUT: tl.constexpr, K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries that face several tiles of keys, or none;"""
    query_T, query_sentence_T = load_sentences(query_sentences_ptr, start, stop, _NO_QUERY, TILE)
    query_TK = load_rows(query_ptr, query_stride, start, stop, K, TILE)
    grad_out_TK = load_rows(grad_out_ptr, grad_out_stride, start, stop, K, TILE)
    log_sum_T = tl.load(log_sums_ptr + query_T, mask=query_T < stop, other=0.0)
    mean_T = mean_slope(grad_out_TK, out_ptr, out_stride, start, stop, K, TILE)
    grad_query_TK = tl.zeros([TILE, K], tl.float32)
    for key in tl.range(first_key, stop if CAUSAL else last_key, TILE, disable_licm=True):
        key_T, key_sentence_T = load_sentences(key_sentences_ptr, key, last_key, _NO_KEY, TILE)
        key_TK = load_rows(key_ptr, key_stride, key, last_key, K, TILE)
        value_TK = load_rows(value_ptr, value_stride, key, last_key, K, TILE)
        chance_TT = chances(
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
        slope_TT = dot(grad_out_TK, tl.trans(value_TK))
        if HAS_DROPOUT:
            stays_TT = kept(seed_ptr, site, offsets(before + query_T, key_T - first_key), threshold)
            slope_TT = tl.where(stays_TT, slope_TT * upscale, 0.0)
        grad_score_TT = (chance_TT * (slope_TT - mean_T[:, None])).to(key_TK.dtype)
        grad_query_TK += dot(grad_score_TT, key_TK)
    store_rows(grad_query_ptr, 0, grad_query_stride, grad_query_TK * scale, start, stop, K, TILE)
