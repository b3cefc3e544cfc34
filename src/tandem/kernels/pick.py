"""The likeliest pieces of every row of logits, in one pass over the vocabulary."""

# Shapes: R rows, V vocabulary, M parts that it is cut into, C pieces picked of each row.

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["pick_likeliest"]

_BLOCK = 4096
"""Logits of a part: few enough for a processor to work on some while it loads others."""

_WARPS = 4


def pick_likeliest(
    logits_RV: Tensor, forced_R: Tensor, *, banned_V: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """Log-probabilities (fp32) and ids (int64) of the likeliest pieces [R, C], best first; of equals the first.

    Where `forced_R` is not negative, that id comes first, and minus infinity behind it. What is 1 in `banned_V` (int8)
    is not picked, but counts in the probabilities of others.
    """
    rows, vocabulary = logits_RV.shape
    logits_RV, count = logits_RV.contiguous(), min(count, vocabulary)
    block = min(_BLOCK, triton.next_power_of_2(vocabulary))
    parts = triton.cdiv(vocabulary, block)

    def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=logits_RV.device)

    highest_RM, sums_RM = empty(rows, parts), empty(rows, parts)
    best_RMC, places_RMC = empty(rows, parts, count), empty(rows, parts, count, dtype=torch.int32)
    scores_RC, ids_RC = empty(rows, count), empty(rows, count, dtype=torch.int64)
    _pick_of_part[rows, parts](
        logits_RV,
        banned_V,
        highest_RM,
        sums_RM,
        best_RMC,
        places_RMC,
        V=vocabulary,
        C=count,
        BLOCK=block,
        num_warps=_WARPS,
    )
    _pick_of_parts[(rows,)](
        logits_RV,
        forced_R.contiguous(),
        highest_RM,
        sums_RM,
        best_RMC,
        places_RMC,
        scores_RC,
        ids_RC,
        V=vocabulary,
        C=count,
        M=parts,
        PARTS=triton.next_power_of_2(parts),
        BLOCK=triton.next_power_of_2(parts * count),
        num_warps=1,
    )
    return scores_RC, ids_RC


@triton.jit
def _pick_of_part(
    logits_ptr, banned_ptr, highest_ptr, sums_ptr, best_ptr, places_ptr,
    V: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = part * BLOCK + tl.arange(0, BLOCK)
    inside = columns < V
    logits = tl.load(logits_ptr + row * V + columns, mask=inside, other=float("-inf")).to(tl.float32)
    banned = tl.load(banned_ptr + columns, mask=inside, other=1)
    highest = tl.max(logits, 0)
    base = tl.where(highest == float("-inf"), 0.0, highest)  # a difference of two such would be no number
    place = row * tl.num_programs(1) + part
    tl.store(highest_ptr + place, highest)
    tl.store(sums_ptr + place, tl.sum(tl.exp(logits - base), 0))
    logits = tl.where(banned != 0, float("-inf"), logits)
    for rank in range(C):
        best, at = tl.max(logits, 0, return_indices=True, return_indices_tie_break_left=True)
        tl.store(best_ptr + place * C + rank, best)
        # More may be asked for than there is.
        tl.store(places_ptr + place * C + rank, tl.minimum(part * BLOCK + at, V - 1))
        logits = tl.where(tl.arange(0, BLOCK) == at, float("-inf"), logits)


@triton.jit
def _pick_of_parts(
    logits_ptr, forced_ptr, highest_ptr, sums_ptr, best_ptr, places_ptr, scores_ptr, ids_ptr,
    V: tl.constexpr, C: tl.constexpr, M: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    parts, candidates = tl.arange(0, PARTS), tl.arange(0, BLOCK)
    bases = tl.load(highest_ptr + row * M + parts, mask=parts < M, other=float("-inf"))
    sums = tl.load(sums_ptr + row * M + parts, mask=parts < M, other=0.0)
    base = tl.max(bases, 0)
    log_sum = base + tl.log(tl.sum(sums * tl.exp(bases - base), 0))
    forced = tl.load(forced_ptr + row)
    if forced >= 0:
        at_forced = tl.load(logits_ptr + row * V + forced).to(tl.float32)
        for rank in range(C):
            tl.store(scores_ptr + row * C + rank, tl.where(rank == 0, at_forced - log_sum, float("-inf")))
            tl.store(ids_ptr + row * C + rank, forced)
    else:
        is_candidate = candidates < M * C
        scores = tl.load(best_ptr + row * (M * C) + candidates, mask=is_candidate, other=float("-inf"))
        for rank in range(C):
            best, at = tl.max(scores, 0, return_indices=True, return_indices_tie_break_left=True)
            tl.store(scores_ptr + row * C + rank, best - log_sum)
            place = tl.load(places_ptr + row * (M * C) + tl.minimum(at, M * C - 1))
            tl.store(ids_ptr + row * C + rank, place.to(tl.int64))
            scores = tl.where(candidates == at, float("-inf"), scores)
