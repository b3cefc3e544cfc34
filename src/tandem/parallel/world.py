"""All ranks of a run, as one of them sees them; one process alone is a world too."""

import json
import os
from dataclasses import dataclass, field
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from tandem.artefact import JsonValue
from tandem.errors import TandemError
from tandem.parallel.meeting import join
from tandem.parallel.pulse import NullPulse, Pulse, open_pulse

__all__ = ["Handle", "SoloWorld", "TorchWorld", "World", "open_world"]


class Handle(Protocol):
    """A sum on its way."""

    def wait(self) -> object:
        """Return when the sum is there; on a GPU, make what is queued from now on wait for it."""
        ...


class World(Protocol):
    """The ranks of a run. Every rank must make the same calls in the same order."""

    @property
    def rank(self) -> int:
        """Which of them this one is, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many ranks there are."""
        ...

    @property
    def local_rank(self) -> int:
        """Which of its host's ranks this one is, from 0."""
        ...

    @property
    def is_one_host(self) -> bool:
        """Whether all ranks are known to be on this host."""
        ...

    @property
    def pulse(self) -> Pulse:
        """Where this rank shows that it lives."""
        ...

    @property
    def device(self) -> torch.device:
        """Where this rank computes, and where tensors that it exchanges lie."""
        ...

    def sum(self, tensor: Tensor) -> None:
        """Put the sum over all ranks in place of the tensor."""
        ...

    def start_sum(self, tensor: Tensor, name: str = "sum") -> Handle:
        """Begin to sum in place; the tensor is not to be touched before the handle was waited for."""
        ...

    def largest(self, tensor: Tensor) -> None:
        """Put the largest over all ranks, element by element, in place of the tensor."""
        ...

    def smallest(self, tensor: Tensor) -> None:
        """Put the smallest over all ranks, element by element, in place of the tensor."""
        ...

    def share(self, tensor: Tensor, source: int = 0) -> None:
        """Put one rank's value in place of the tensor."""
        ...

    def gather(self, value: JsonValue) -> list[JsonValue]:
        """The values of all ranks, in order, on every rank."""
        ...

    def barrier(self) -> None:
        """Return when all ranks have come here."""
        ...

    def close(self) -> None:
        """Leave; may be called again."""
        ...


class _Done:
    """The handle of a sum that needs no other rank."""

    def wait(self) -> None:
        """Return at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoloWorld:
    """One process alone: what it has is already the sum."""

    device: torch.device
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    is_one_host: bool = True
    pulse: Pulse = field(default_factory=NullPulse)

    def sum(self, tensor: Tensor) -> None:
        """Leave the tensor as it is."""

    def start_sum(self, tensor: Tensor, name: str = "sum") -> Handle:  # noqa: ARG002  (the interface's)
        """Leave the tensor as it is."""
        return _Done()

    def largest(self, tensor: Tensor) -> None:
        """Leave the tensor as it is."""

    def smallest(self, tensor: Tensor) -> None:
        """Leave the tensor as it is."""

    def share(self, tensor: Tensor, source: int = 0) -> None:
        """Leave the tensor as it is."""

    def gather(self, value: JsonValue) -> list[JsonValue]:
        """The value as others would get it."""
        return [_from_bytes(_to_bytes(value))]

    def barrier(self) -> None:
        """Go on."""

    def close(self) -> None:
        """Nothing was opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Felt:
    """The handle of a sum, whose wait is felt in the pulse."""

    handle: Handle
    pulse: Pulse
    name: str

    def wait(self) -> None:
        """Return when the sum is there; on a GPU, make what is queued from now on wait for it."""
        with self.pulse.waiting(self.name):
            self.handle.wait()


class TorchWorld:
    """Ranks joined by torch.distributed."""

    def __init__(self, *, device: torch.device, local_rank: int, timeout_s: float, pulse: Pulse) -> None:
        """Meet the others, as RANK, WORLD_SIZE and what `parallel.meeting` knows in the environment say."""
        rank, size = _number("RANK", 0), _number("WORLD_SIZE", 1)
        self.is_one_host = os.environ.get("LOCAL_WORLD_SIZE") == str(size)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        self.pulse = pulse
        with pulse.collective("meeting"):
            join(rank=rank, size=size, device=device, timeout_s=timeout_s)
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.local_rank = local_rank
        self.device = device

    def sum(self, tensor: Tensor) -> None:
        """Put the sum over all ranks in place of the tensor."""
        with self.pulse.collective("sum"):
            dist.all_reduce(tensor)

    def start_sum(self, tensor: Tensor, name: str = "sum") -> Handle:
        """Begin to sum in place; the tensor is not to be touched before the handle was waited for."""
        self.pulse.begin(name)
        handle: Handle = dist.all_reduce(tensor, async_op=True)
        return _Felt(handle=handle, pulse=self.pulse, name=name)

    def largest(self, tensor: Tensor) -> None:
        """Put the largest over all ranks, element by element, in place of the tensor."""
        with self.pulse.collective("largest"):
            dist.all_reduce(tensor, dist.ReduceOp.MAX)

    def smallest(self, tensor: Tensor) -> None:
        """Put the smallest over all ranks, element by element, in place of the tensor."""
        with self.pulse.collective("smallest"):
            dist.all_reduce(tensor, dist.ReduceOp.MIN)

    def share(self, tensor: Tensor, source: int = 0) -> None:
        """Put one rank's value in place of the tensor."""
        with self.pulse.collective("share"):
            dist.broadcast(tensor, src=source)

    def gather(self, value: JsonValue) -> list[JsonValue]:
        """The values of all ranks, in order, on every rank."""
        mine = torch.frombuffer(bytearray(_to_bytes(value)), dtype=torch.uint8).to(self.device)
        counts = torch.zeros(self.size, dtype=torch.int64, device=self.device)
        counts[self.rank] = len(mine)
        with self.pulse.collective("gather"):
            dist.all_reduce(counts)
            lengths: list[int] = counts.tolist()
        rows = torch.zeros(self.size, max(lengths), dtype=torch.uint8, device=self.device)
        rows[self.rank, : len(mine)] = mine
        with self.pulse.collective("gather"):
            dist.all_reduce(rows)
            held = rows.cpu().numpy()
        return [_from_bytes(held[rank, :length].tobytes()) for rank, length in enumerate(lengths)]

    def barrier(self) -> None:
        """Return when all ranks have come here."""
        with self.pulse.collective("barrier"):
            dist.all_reduce(token := torch.zeros(1, device=self.device))
            token.item()

    def close(self) -> None:
        """Leave; may be called again."""
        if dist.is_initialized():
            dist.destroy_process_group()


def open_world(device: str = "auto", *, timeout_s: float) -> World:
    """The world that the environment speaks of; device is auto, cpu or cuda. Waits at most so long for any rank."""
    size, rank = _number("WORLD_SIZE", 1), _number("RANK", 0)
    local_rank = _number("LOCAL_RANK", 0)
    chosen = _choose_device(device, local_rank)
    if not 0 <= rank < size:
        raise TandemError(
            f"RANK is {rank} and WORLD_SIZE {size}: ranks are numbered from 0 and below WORLD_SIZE."
        )
    pulse = open_pulse()
    if size == 1:
        return SoloWorld(device=chosen, pulse=pulse)
    return TorchWorld(device=chosen, local_rank=local_rank, timeout_s=timeout_s, pulse=pulse)


def _choose_device(name: str, local_rank: int) -> torch.device:
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if count == 1 and _has_gpu_from_slurm(local_rank):
        return torch.device("cuda", 0)
    if local_rank >= count:
        raise TandemError(
            f"Worker {local_rank} of this host wants a GPU of its own, but {count} can be seen here: "
            "give fewer --workers, or --device cpu."
        )
    return torch.device("cuda", local_rank)


def _has_gpu_from_slurm(local_rank: int) -> bool:
    """Whether this rank is a task of srun's that was given GPUs of its own; ranks that a task started share its."""
    return "SLURM_GPUS_PER_TASK" in os.environ and os.environ.get("SLURM_LOCALID") == str(local_rank)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise TandemError(f"{name} is {text!r} in the environment: make it a whole number.") from None


def _to_bytes(value: JsonValue) -> bytes:
    return json.dumps(value).encode()


def _from_bytes(held: bytes) -> JsonValue:
    value: JsonValue = json.loads(held)
    return value
