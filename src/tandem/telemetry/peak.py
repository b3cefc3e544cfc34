"""How fast a device multiplies large matrices: what a model's own speed is held against."""

import math
import time
from contextlib import suppress

import torch
from torch import Tensor

from tandem.runlog.event import DeviceMeasured

__all__ = ["measure_device", "name_device"]

_TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.bfloat16,
}
# Training in fp8 has its linear maps alone in fp8; all the rest is bf16, which is the yardstick of both.
_TOLD = {"fp8": "bf16"}
_SIDES = {"cpu": (512, 1024), "cuda": (2048, 4096, 8192)}
_SIDE_S = 0.02
"""How long each size is tried: long enough for clocks to settle, short enough for a start that feels instant."""
_MOST_S = 0.4
_BLOCK_S = 0.005
_TRIES = 2


def measure_device(device: torch.device, precision: str) -> DeviceMeasured:
    """The best of several sizes and of several tries; to be done by all ranks at once, as they share hosts.

    A device that refuses is not measured: nan.
    """
    begun_s = time.perf_counter()
    rates: list[float] = []
    left_s = _MOST_S
    for side in _SIDES[device.type]:
        # Lack of memory is a RuntimeError too.
        with suppress(RuntimeError):
            rates.append(_rate(side, device, _TYPES[precision]))
        # A product of the next size takes eight times as long.
        left_s -= _SIDE_S
        if not rates or (_TRIES + 1) * 8 * 2 * side**3 / max(rates) > left_s:
            break
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return DeviceMeasured(
        device=name_device(device),
        precision=_TOLD.get(precision, precision),
        flops_per_s=max(rates, default=math.nan),
        duration_s=time.perf_counter() - begun_s,
    )


def name_device(device: torch.device) -> str:
    """`cpu`, or the name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def _rate(side: int, device: torch.device, kind: torch.dtype) -> float:
    """Operations a second in products of square matrices."""
    # Numbers of a model's size: a GPU draws less power, and clocks higher, on zeros.
    dice = torch.Generator(device).manual_seed(0)
    left, right = (torch.randn(side, side, device=device, generator=dice).to(kind) for _ in range(2))
    product = torch.empty(side, side, device=device, dtype=kind)
    # The first of a size finds its kernel, and on a GPU opens the library.
    once_s = min(_time(left, right, product, times=1) for _ in range(_TRIES))
    times = math.ceil(_BLOCK_S / once_s)
    blocks = math.ceil(_SIDE_S / (times * once_s))
    # The best block: another process may have taken the core in the others.
    return 2 * side**3 * times / min(_time(left, right, product, times=times) for _ in range(blocks))


def _time(left: Tensor, right: Tensor, product: Tensor, *, times: int) -> float:
    """Seconds of so many products, until the device is done with them."""
    _wait(left.device)
    begun_s = time.perf_counter()
    for _ in range(times):
        torch.mm(left, right, out=product)
    _wait(left.device)
    return time.perf_counter() - begun_s


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
