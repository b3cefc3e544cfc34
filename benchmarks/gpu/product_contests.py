"""The matrix products of a model, by themselves: what cuBLAS reaches with numbers that lie ready."""

from collections.abc import Callable
from functools import partial

import torch
from benchmarks.gpu.contest import Contender, Contest, Ready
from benchmarks.gpu.setting import Setting
from torch import Tensor

__all__ = ["PRODUCTS", "build_products"]

PRODUCTS = ("query, key, value", "attention out", "feed-forward in", "feed-forward out", "logits of half")
"""The contests."""

_TUNED = ("attention out", "feed-forward in")
"""So many are enough to see whether it pays, as each takes long to tune."""


def build_products(setting: Setting, kernel: str) -> Contest:
    """Return the contest of that name, with numbers of its own."""
    width, inner, places = setting.model.width, setting.model.feed_forward, setting.places
    rows, read, written = {
        "query, key, value": (places, width, 3 * width),
        "attention out": (places, width, width),
        "feed-forward in": (places, width, inner),
        "feed-forward out": (places, inner, width),
        "logits of half": (places // 2, width, setting.vocabulary),
    }[kernel]
    x, weight, grad = setting.draw(rows, read), setting.draw(written, read), setting.draw(rows, written)
    ways = "forward", "input gradient", "weight gradient, fp32 sum", "weight gradient, half"
    contenders = [Contender(name="torch.mm", prepare=partial(_multiply, x, weight, grad))]
    if kernel in _TUNED and setting.size == "base":
        tuned = partial(_tuned, x, weight)
        contenders.append(Contender(name="compiled, max-autotune", prepare=tuned, is_compiled=True))
    return Contest(
        kernel=kernel,
        size=setting.size,
        flops=dict.fromkeys(ways, 2.0 * rows * read * written),
        contenders=contenders,
    )


def _multiply(x: Tensor, weight: Tensor, grad: Tensor) -> Ready:
    bucket = torch.zeros_like(weight, dtype=torch.float32)

    def add() -> Tensor:
        if x.is_cuda:
            return torch.addmm(bucket, grad.T, x, out_dtype=torch.float32, out=bucket)
        return bucket.addmm_(grad.T.float(), x.float())

    runs: dict[str, Callable[[], Tensor]] = {
        "forward": lambda: x @ weight.T,
        "input gradient": lambda: grad @ weight,
        "weight gradient, fp32 sum": add,
        "weight gradient, half": lambda: grad.T @ x,
    }
    return Ready(runs=runs, outcome={"forward": runs["forward"]()})


def _tuned(x: Tensor, weight: Tensor) -> Ready:
    def multiply(x: Tensor, weight: Tensor) -> Tensor:
        return x @ weight.T

    call = torch.compile(multiply, dynamic=False, mode="max-autotune-no-cudagraphs")
    return Ready(runs={"forward": lambda: call(x, weight)}, outcome={"forward": call(x, weight)})
