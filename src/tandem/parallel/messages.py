"""Messages from rank to rank, beside the collectives; encoded gradients carry a checksum."""

import struct
import zlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from tandem.parallel.world import Handle

__all__ = ["SEAL_BYTES", "DamagedMessageError", "Origin", "TorchTransport", "Transport", "check_seal", "seal"]

_SEAL = struct.Struct("<I")
SEAL_BYTES = _SEAL.size
"""Bytes of the checksum behind a message."""
_ORIGIN = struct.Struct("<QQQ")


class DamagedMessageError(RuntimeError):
    """A message arrived with other bytes than it was sent with.

    No TandemError, which would end the run: the launcher starts it again from its checkpoint.
    """


class Transport(Protocol):
    """Sends tensors in host memory between ranks, from any thread.

    Messages between two ranks with the same tag arrive in the order in which they were sent.
    """

    def send(self, tensor: Tensor, rank: int, tag: int) -> Handle:
        """Begin to send; the tensor must not change before the handle was waited for."""
        ...

    def receive(self, tensor: Tensor, rank: int, tag: int) -> Handle:
        """Begin to receive into a tensor of the right size."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """A handle whose wait ends when the world's patience does.

    Without a time gloo would wait for as long as its group was given to connect.
    """

    work: dist.Work
    timeout: timedelta

    def wait(self) -> None:
        """Return when the message was sent or is there; RuntimeError where the other rank is gone."""
        self.work.wait(timeout=self.timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchTransport:
    """Point-to-point messages of the process group that all ranks have joined, over the connections it has."""

    timeout_s: float

    def send(self, tensor: Tensor, rank: int, tag: int) -> Handle:
        """Begin to send; the tensor must not change before the handle was waited for."""
        return self._timed(dist.isend(tensor, dst=rank, tag=tag))

    def receive(self, tensor: Tensor, rank: int, tag: int) -> Handle:
        """Begin to receive into a tensor of the right size."""
        return self._timed(dist.irecv(tensor, src=rank, tag=tag))

    def _timed(self, work: dist.Work | None) -> Handle:
        assert work is not None
        return _Timed(work=work, timeout=timedelta(seconds=self.timeout_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a message is, which goes into its checksum: a message of another step or bucket does not fit either."""

    step: int
    bucket: int
    rank: int
    """The rank that encoded it; others may pass it on."""


def seal(message: Tensor, origin: Origin) -> None:
    """Write the checksum of a message's payload into its last bytes."""
    checksum = _SEAL.pack(_checksum(message, origin))
    message[-SEAL_BYTES:] = torch.frombuffer(bytearray(checksum), dtype=torch.uint8)


def check_seal(message: Tensor, origin: Origin, *, receiver: int) -> None:
    """Compare a message with its checksum; DamagedMessageError if they differ."""
    (expected,) = _SEAL.unpack(bytes(message[-SEAL_BYTES:].tolist()))
    if expected != _checksum(message, origin):
        raise DamagedMessageError(
            f"The gradients that rank {origin.rank} encoded for bucket {origin.bucket + 1} of step {origin.step} "
            f"reached rank {receiver} damaged: their checksum differs."
        )


def _checksum(message: Tensor, origin: Origin) -> int:
    begun = zlib.crc32(_ORIGIN.pack(origin.step, origin.bucket, origin.rank))
    return zlib.crc32(message[:-SEAL_BYTES].numpy().data, begun)
