"""Attention over packed sentences: ours beside what PyTorch has for sentences of unequal length."""

# Shapes: queries, keys and values are [places, heads, width of a head], as a linear map leaves them.

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import torch
from benchmarks.gpu.contest import OURS, Contender, Contest, Ready, by_autograd
from benchmarks.gpu.setting import Setting
from torch import Tensor
from torch.nn import functional

from tandem.kernels.attention import attention_backward, attention_forward
from tandem.model.tokens import PackedTokens

__all__ = ["ATTENTION", "build_attention"]

ATTENTION = ("self attention", "causal attention", "cross attention", "block mask")
"""The contests; PyTorch's flex attention needs a block mask for each batch, which is timed apart."""

_SITE = 5
_RECTANGLES = 16
_WIDTH_MULTIPLE = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Problem:
    query: Tensor
    key: Tensor
    value: Tensor
    grad_out: Tensor
    """0 where there is padding."""
    queries: PackedTokens
    keys: PackedTokens
    query_tokens: int
    key_tokens: int
    query_bounds: Tensor
    """[pairs + 1] without those that stand for no sentence."""
    key_bounds: Tensor
    causal: bool
    seed: Tensor

    @property
    def real(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value without padding."""
        return self.query[: self.query_tokens], self.key[: self.key_tokens], self.value[: self.key_tokens]

    def outcome(self, out: Tensor, grads: Sequence[Tensor]) -> dict[str, Tensor]:
        """What counts of results that may have padding at the end."""
        query, key, value = grads
        return {
            "out": out[: self.query_tokens],
            "grad_query": query[: self.query_tokens],
            "grad_key": key[: self.key_tokens],
            "grad_value": value[: self.key_tokens],
        }


def build_attention(setting: Setting, kernel: str) -> Contest:
    """Return the contest of that name, with numbers of its own."""
    problem = _pose(setting, kernel.partition(" ")[0])
    if kernel == "block mask":
        makers = [
            Contender(name="create_block_mask", prepare=partial(_block_mask, problem, is_compiled=False)),
            Contender(
                name="create_block_mask, compiled",
                prepare=partial(_block_mask, problem, is_compiled=True),
                is_compiled=True,
            ),
        ]
        # On a CPU it would be made of loops: the mask is wanted by a compiled kernel only.
        makers = makers if setting.device.type == "cuda" else makers[:1]
        return Contest(kernel=kernel, size=setting.size, contenders=makers)
    one = problem.query.numel() * problem.query.element_size()
    return Contest(
        kernel=kernel,
        size=setting.size,
        least_bytes={"forward": 4 * one, "backward": 7 * one, "both": 11 * one},
        contenders=[
            Contender(name=OURS, prepare=partial(_ours, problem, share=0.0)),
            Contender(name=f"{OURS}, dropout 0.1", prepare=partial(_ours, problem, share=0.1)),
            Contender(name="varlen_attn", prepare=partial(_varlen, problem)),
            Contender(name="padded sdpa", prepare=partial(_padded, problem)),
            Contender(name="flex_attention, compiled", prepare=partial(_flex, problem), is_compiled=True),
            # Last: a graph that fails to be recorded may spoil the next one.
            Contender(name="nested sdpa", prepare=partial(_nested, problem)),
        ],
    )


def _pose(setting: Setting, kind: str) -> _Problem:
    row, heads = setting.row, setting.model.heads
    source, target = (row.source, row.source_tokens), (row.target, row.target_tokens)
    sides = {"causal": (target, target), "cross": (target, source)}
    (queries, query_tokens), (keys, key_tokens) = sides.get(kind, (source, source))
    shape = heads, setting.model.width // heads
    if kind == "cross":
        (query,) = setting.draw(setting.places, 1, *shape).unbind(1)
        key, value = setting.draw(setting.places, 2, *shape).unbind(1)
    else:
        query, key, value = setting.draw(setting.places, 3, *shape).unbind(1)
    grad_out = setting.draw(setting.places, *shape)
    grad_out[query_tokens:] = 0
    return _Problem(
        query=query,
        key=key,
        value=value,
        grad_out=grad_out,
        queries=queries,
        keys=keys,
        query_tokens=query_tokens,
        key_tokens=key_tokens,
        query_bounds=queries.bounds[: row.pairs + 1],
        key_bounds=keys.bounds[: row.pairs + 1],
        causal=kind == "causal",
        seed=setting.seed,
    )


def _ours(problem: _Problem, *, share: float) -> Ready:
    # Rows of gradients are as far apart as those of the numbers.
    grads = [
        torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device).fill_(torch.nan)
        for each in (problem.query, problem.key, problem.value)
    ]

    def forward(share: float) -> tuple[Tensor, Tensor]:
        return attention_forward(
            problem.query,
            problem.key,
            problem.value,
            **_sides(problem),
            share=share,
            seed=problem.seed,
            site=_SITE,
        )

    def backward(found: tuple[Tensor, Tensor], share: float) -> None:
        attention_backward(
            problem.grad_out,
            query=problem.query,
            key=problem.key,
            value=problem.value,
            out=found[0],
            log_sums=found[1],
            **_sides(problem),
            share=share,
            seed=problem.seed,
            site=_SITE,
            grad_query=grads[0],
            grad_key=grads[1],
            grad_value=grads[2],
        )

    exact = forward(0.0)
    backward(exact, 0.0)
    outcome = problem.outcome(exact[0], [grad.clone() for grad in grads])
    found = forward(share)
    return Ready(
        runs={
            "forward": lambda: forward(share),
            "backward": lambda: backward(found, share),
            "both": lambda: backward(forward(share), share),
        },
        outcome=outcome,
    )


def _sides(problem: _Problem) -> dict[str, Any]:
    return {"queries": problem.queries.side, "keys": problem.keys.side, "causal": problem.causal}


def _leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach().requires_grad_() for tensor in tensors]


def _ready(problem: _Problem, attend: Callable[..., Any], inputs: list[Tensor], grad_out: Tensor) -> Ready:
    """A function of query, key and value, each with the places first."""
    out = attend(*inputs)
    grads = torch.autograd.grad(out, inputs, grad_out)
    return Ready(runs=by_autograd(attend, inputs, [grad_out]), outcome=problem.outcome(out.detach(), grads))


def _varlen(problem: _Problem) -> Ready:
    from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415  (not every PyTorch has it)

    old = "is_causal" in signature(varlen_attn).parameters
    window = {"is_causal": problem.causal} if old else {"window_size": (-1, 0 if problem.causal else -1)}
    where: Any = problem.query_bounds, problem.key_bounds, problem.queries.longest, problem.keys.longest
    return _ready(
        problem,
        lambda query, key, value: varlen_attn(query, key, value, *where, **window),
        _leaves(problem.real),
        problem.grad_out[: problem.query_tokens],
    )


def _nested(problem: _Problem) -> Ready:
    # The same bounds are the same lengths only if they are one object.
    query_bounds = problem.query_bounds.long()
    key_bounds = query_bounds if problem.queries is problem.keys else problem.key_bounds.long()

    def sentences(values: Tensor, bounds: Tensor, longest: int | None) -> Tensor:
        return torch.nested.nested_tensor_from_jagged(
            values, bounds, min_seqlen=1, max_seqlen=longest
        ).transpose(1, 2)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        found = functional.scaled_dot_product_attention(
            sentences(query, query_bounds, problem.queries.longest),
            sentences(key, key_bounds, problem.keys.longest),
            sentences(value, key_bounds, problem.keys.longest),
            is_causal=problem.causal,
        )
        values: Tensor = found.transpose(1, 2).values()
        return values

    # It takes none that lie side by side with others.
    apart = [each.contiguous() for each in problem.real]
    return _ready(problem, attend, _leaves(apart), problem.grad_out[: problem.query_tokens])


def _flex(problem: _Problem) -> Ready:
    from torch.nn.attention.flex_attention import (  # noqa: PLC0415  (slow to import, and not wanted on a CPU)
        create_block_mask,
        flex_attention,
    )

    mask = create_block_mask(*_mask_rule(problem), device=str(problem.query.device))
    compiled: Callable[..., Tensor] = torch.compile(flex_attention, dynamic=False)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads_first = (each.transpose(0, 1)[None] for each in (query, key, value))
        return compiled(*heads_first, block_mask=mask)[0].transpose(0, 1)

    return _ready(problem, attend, _leaves((problem.query, problem.key, problem.value)), problem.grad_out)


def _mask_rule(problem: _Problem) -> tuple[Callable[..., Tensor], None, None, int, int]:
    assert problem.queries.side is not None
    assert problem.keys.side is not None
    query_sentences, key_sentences = problem.queries.side.sentences, problem.keys.side.sentences

    def is_own(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:  # noqa: ARG001
        own = query_sentences[query] == key_sentences[key]
        return own & (query >= key) if problem.causal else own

    return is_own, None, None, len(query_sentences), len(key_sentences)


def _block_mask(problem: _Problem, *, is_compiled: bool) -> Ready:
    from torch.nn.attention.flex_attention import create_block_mask  # noqa: PLC0415  (as above)

    make = torch.compile(create_block_mask, dynamic=False) if is_compiled else create_block_mask
    rule = _mask_rule(problem)
    found = make(*rule, device=str(problem.query.device))
    return Ready(
        runs={"forward": lambda: make(*rule, device=str(problem.query.device))},
        outcome={"blocks": found.kv_num_blocks},
    )


def _padded(problem: _Problem) -> Ready:
    """The same sentences in rectangles of those that are alike in length."""
    query_places, key_places = _rectangles(problem)
    count = len(query_places)
    query, key, value = (_with_zero(each) for each in problem.real)
    grad_out = _with_zero(problem.grad_out[: problem.query_tokens])
    queries, grads_out = ([_cut(each, places) for places in query_places] for each in (query, grad_out))
    keys, values = ([_cut(each, places) for places in key_places] for each in (key, value))
    # Padding is behind every real token: where none looks ahead, none sees it.
    masks = [
        None if problem.causal else (places < problem.key_tokens)[:, None, None, :] for places in key_places
    ]

    def attend(*given: Tensor) -> list[Tensor]:
        sides = (given[start : start + count] for start in range(0, 3 * count, count))
        return [
            functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=problem.causal
            )
            for query, key, value, mask in zip(*sides, masks, strict=True)
        ]

    inputs = _leaves([*queries, *keys, *values])
    outs = attend(*inputs)
    grads = torch.autograd.grad(outs, inputs, grads_out)
    out, by_query = (_join(each, query_places, problem.query_tokens) for each in (outs, grads[:count]))
    by_key, by_value = (
        _join(grads[start : start + count], key_places, problem.key_tokens) for start in (count, 2 * count)
    )
    places = sum(each.numel() for each in query_places)
    return Ready(
        runs=by_autograd(attend, inputs, grads_out),
        outcome=problem.outcome(out, (by_query, by_key, by_value)),
        notes={"padding": round(1 - problem.query_tokens / places, 4), "rectangles": count},
    )


def _rectangles(problem: _Problem) -> tuple[list[Tensor], list[Tensor]]:
    """Where the tokens of each rectangle stand in the rows of queries and keys."""
    lengths = [bounds.diff() for bounds in (problem.query_bounds, problem.key_bounds)]
    order = torch.maximum(*lengths).argsort()
    query_places, key_places = [], []
    for chosen in order.tensor_split(_RECTANGLES):
        if len(chosen):
            query_places.append(_places(problem.query_bounds, lengths[0], chosen))
            key_places.append(_places(problem.key_bounds, lengths[1], chosen))
    return query_places, key_places


def _places(bounds: Tensor, lengths: Tensor, chosen: Tensor) -> Tensor:
    """[sentences, length] places of tokens; padding is where the last sentence ends."""
    width = -(-int(lengths[chosen].max()) // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
    columns = torch.arange(width, device=bounds.device)
    return torch.where(columns < lengths[chosen, None], bounds[chosen, None] + columns, bounds[-1])


def _with_zero(values: Tensor) -> Tensor:
    return torch.cat((values, torch.zeros_like(values[:1])))


def _cut(values: Tensor, places: Tensor) -> Tensor:
    return values[places].transpose(1, 2)


def _join(rectangles: Sequence[Tensor], places: Sequence[Tensor], tokens: int) -> Tensor:
    """The row that rectangles were cut from."""
    first = rectangles[0].detach().transpose(1, 2)
    row = first.new_full((tokens + 1, *first.shape[2:]), torch.nan)
    for rectangle, own in zip(rectangles, places, strict=True):
        row[own] = rectangle.detach().transpose(1, 2)
    return row[:tokens]
