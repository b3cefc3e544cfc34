"""One step of Adam over all weights of a model: ours, and PyTorch's fused one on one tensor or on each parameter."""

from collections.abc import Sequence
from functools import partial

import torch
from benchmarks.gpu.contest import OURS, Contender, Contest, Ready
from benchmarks.gpu.setting import SPECIAL, Setting
from torch import Tensor, nn

from tandem.kernels.adam import adam_
from tandem.model.transformer import Transformer

__all__ = ["ADAM", "build_adam_contest"]

ADAM = ("adam",)
"""The contests."""

_RATE = 1e-3
_BETAS = (0.9, 0.98)
_EPSILON = 1e-9
_BYTES = 30
"""Of a weight: itself, gradient and two moments read, all but the gradient written, in fp32; and in half precision."""


def build_adam_contest(setting: Setting, kernel: str) -> Contest:
    """Return the contest of that name, with numbers of its own."""
    with torch.device("meta"):
        model = Transformer(
            setting.model,
            source_vocabulary=setting.vocabulary,
            target_vocabulary=setting.vocabulary,
            pad=SPECIAL.pad,
        )
    shapes = [parameter.shape for parameter in model.parameters()]
    count = sum(shape.numel() for shape in shapes)
    weights, gradients = (setting.draw(count, dtype=torch.float32) for _ in range(2))
    flat = partial(_torchs, weights, gradients, dtype=setting.dtype)
    return Contest(
        kernel=kernel,
        size=setting.size,
        least_bytes={"step": _BYTES * count},
        contenders=[
            Contender(name=OURS, prepare=partial(_ours, weights, gradients, dtype=setting.dtype)),
            Contender(name="fused AdamW and copy, one tensor", prepare=partial(flat, shapes=[weights.shape])),
            Contender(
                name=f"fused AdamW and copy, {len(shapes)} tensors", prepare=partial(flat, shapes=shapes)
            ),
        ],
    )


def _ours(weights: Tensor, gradients: Tensor, *, dtype: torch.dtype) -> Ready:
    own, first, second = weights.clone(), torch.zeros_like(weights), torch.zeros_like(weights)
    halves = torch.empty_like(weights, dtype=dtype)
    numbers = torch.tensor(
        [_RATE, 1 - _BETAS[0], (1 - _BETAS[1]) ** 0.5, 1.0, 0.0], device=weights.device, dtype=torch.float32
    )

    def step() -> None:
        adam_(own, gradients, first, second, numbers=numbers, betas=_BETAS, epsilon=_EPSILON, halves=halves)

    step()
    return Ready(runs={"step": step}, outcome=_outcome(own, weights, halves))


def _torchs(weights: Tensor, gradients: Tensor, *, dtype: torch.dtype, shapes: Sequence[torch.Size]) -> Ready:
    own, halves = weights.clone(), torch.empty_like(weights, dtype=dtype)
    sizes = [shape.numel() for shape in shapes]
    parts = zip(torch.split(own, sizes), torch.split(gradients, sizes), shapes, strict=True)
    parameters = []
    for part, gradient, shape in parts:
        parameter = nn.Parameter(part.view(shape))
        parameter.grad = gradient.view(shape)
        parameters.append(parameter)
    adam = torch.optim.AdamW(
        parameters,
        lr=_RATE,
        betas=_BETAS,
        eps=_EPSILON,
        weight_decay=0.0,
        fused=True,
        capturable=weights.is_cuda,
    )

    def step() -> None:
        adam.step()
        halves.copy_(own)

    step()
    return Ready(runs={"step": step}, outcome=_outcome(own, weights, halves))


def _outcome(changed: Tensor, weights: Tensor, halves: Tensor) -> dict[str, Tensor]:
    return {"change": changed - weights, "halves": halves.clone()}
