"""From the device to host memory: queued behind the step, so that training goes on at once."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import torch
from torch import Tensor

__all__ = ["Crossing", "copy_to_host", "make_buffers"]


def make_buffers(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Host memory that such tensors can be copied into; a GPU copies fastest from memory that is slow to get."""
    return {name: _buffer(None, tensor) for name, tensor in tensors.items()}


def copy_to_host(tensors: Mapping[str, Tensor], into: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
    """Copy tensors to host memory, into the buffers of an earlier copy where they fit.

    Copies from a GPU are only queued: they hold what the tensors are now, but may be read after `Crossing.wait`.
    """
    before = {} if into is None else into
    buffers = {name: _buffer(before.get(name), tensor) for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        buffers[name].copy_(tensor.detach(), non_blocking=True)
    return buffers


class Crossing:
    """A block in which tensors are copied to the host: tells another thread when they have landed."""

    def __init__(self) -> None:
        self._begun: torch.Event | None = None
        self._ended: torch.Event | None = None
        self._host_s = 0.0

    def __enter__(self) -> Self:
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            # Blocking, so that the thread that waits sleeps rather than spins.
            self._begun, self._ended = (
                torch.Event("cuda", enable_timing=True, blocking=True) for _ in range(2)
            )
            self._begun.record()
        self._host_s = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host_s = time.monotonic() - self._host_s
        if self._ended is not None:
            self._ended.record()

    def wait(self) -> float:
        """Wait until all copies have landed; returns for how many seconds they held up host or device."""
        if self._begun is None or self._ended is None:
            return self._host_s
        self._ended.synchronize()
        return max(self._host_s, self._begun.elapsed_time(self._ended) / 1e3)


def _buffer(before: Tensor | None, tensor: Tensor) -> Tensor:
    if before is not None and (before.shape, before.dtype) == (tensor.shape, tensor.dtype):
        return before
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
