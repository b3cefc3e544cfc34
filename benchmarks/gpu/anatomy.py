"""What the device does in a step: the times of its kernels, summed by what they are for."""

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from tandem import kernels

__all__ = ["CLASSES", "class_of", "own_kernels", "sum_by_class", "take_apart"]

_TOP = 40

# The first that fits counts: attention and the loss are made of products too, and copies of element-wise kernels.
_PATTERNS: Mapping[str, str] = {
    "attention": r"attend|attention|flash|fmha|sdpa|attn",
    "cross-entropy": r"entropy|softmax|nll|smooth|loss",
    "optimiser": r"adam|multi_tensor|foreach|optimi[sz]er|lerp|lpnorm|sum_of_squares|clip|shadow",
    "matrix products": r"gemm|nvjet|cutlass|xmma|cublas|gemv|splitk|matmul|addmm|aten::b?mm\b",
    "copies": r"memcpy|memset|copy|fill|cast",
    "norm and element-wise": r"norm|elementwise|dropout|residual|relu|gelu|silu|activation|bias|reduce|embed|index|"
    r"scatter|gather|column|triton_|aten::(add|mul|sum|div|sub)|threshold",
}

CLASSES = (*_PATTERNS, "other")
"""What kernels are for."""

_MODULES = {
    "attention": r"attention",
    "cross-entropy": r"entropy|loss",
    "optimiser": r"adam|optim",
    "matrix products": r"product|gemm|fp8",
    "norm and element-wise": r"",
}
"""Tandem's own kernels are called by short names: the module tells what they are for."""

_FINDERS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()}


def class_of(kernel: str) -> str:
    """Return what a kernel of this name is for."""
    own = own_kernels().get(kernel)
    return own or next((name for name, finder in _FINDERS.items() if finder.search(kernel)), "other")


@cache
def own_kernels() -> dict[str, str]:
    """Return the class of each Triton function of Tandem: `other` where modules of two classes have the name."""
    found: dict[str, str] = {}
    for file in sorted(Path(kernels.__path__[0]).rglob("*.py")):
        kind = next(name for name, pattern in _MODULES.items() if re.search(pattern, file.stem))
        for name in _triton_functions(file):
            found[name] = kind if found.get(name, kind) == kind else "other"
    return found


def _triton_functions(file: Path) -> list[str]:
    functions = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return [
        function.name
        for function in functions
        if any(ast.unparse(each).startswith("triton.jit") for each in function.decorator_list)
    ]


def sum_by_class(kernels_ms: Mapping[str, float]) -> dict[str, float]:
    """Return milliseconds by class, all classes named."""
    sums = dict.fromkeys(CLASSES, 0.0)
    for kernel, spent_ms in kernels_ms.items():
        sums[class_of(kernel)] += spent_ms
    return {name: round(spent_ms, 3) for name, spent_ms in sums.items()}


def take_apart(step: Callable[[], object], *, steps: int, device: torch.device) -> dict[str, Any]:
    """Return the milliseconds of an average step by class, and the kernels that take longest; call it warm."""
    on_gpu = device.type == "cuda"
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    with profile(activities=[activity], acc_events=True) as seen:
        for _ in range(steps):
            step()
        if on_gpu:
            torch.cuda.synchronize(device)
    kernels_ms: dict[str, float] = {}
    counts: dict[str, float] = {}
    for entry in seen.key_averages():
        if on_gpu and entry.device_type != DeviceType.CUDA:
            continue
        spent_us = entry.self_device_time_total if on_gpu else entry.self_cpu_time_total
        kernels_ms[entry.key] = kernels_ms.get(entry.key, 0.0) + spent_us / 1e3 / steps
        counts[entry.key] = counts.get(entry.key, 0.0) + entry.count / steps
    top = sorted(kernels_ms, key=lambda name: -kernels_ms[name])[:_TOP]
    return {
        "by_class_ms": sum_by_class(kernels_ms),
        "kernels_ms": round(sum(kernels_ms.values()), 3),
        "launches": round(sum(counts.values())),
        "longest": [
            {
                "kernel": name[:160],
                "class": class_of(name),
                "ms": round(kernels_ms[name], 3),
                "launches": round(counts[name], 1),
            }
            for name in top
        ],
    }
