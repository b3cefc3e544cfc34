"""The messages of a coded exchange: who sends what to whom, sealed, and kept until it is sent."""

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

from tandem.parallel.messages import SEAL_BYTES, Origin, Transport, check_seal, seal
from tandem.parallel.topology import Topology
from tandem.parallel.world import Handle

__all__ = ["Kind", "Mail", "Message"]


class Kind(IntEnum):
    """Why a message is sent; each has tags of its own."""

    NUMBERS = 0
    """fp32 numbers of a share, to its owner on the same host."""
    PART = 1
    """Codes of a part of a share, to the host that sums the part."""
    CODES = 2
    """Codes that all ranks decode, to the owner of the same share on another host."""
    COPY = 3
    """The same codes, to the other ranks of a host."""


@dataclass(slots=True, kw_only=True)
class Message:
    """Bytes in host memory that some rank has sent, or that this one has encoded."""

    tensor: Tensor
    origin: Origin | None
    """None for plain numbers, which stay inside a host and are not sealed, as the backend's own sums are not."""
    receiver: int
    handle: Handle | None = None
    """What to wait for, once, before the bytes are there."""

    def arrive(self) -> None:
        """Return when the bytes are there, whatever they are."""
        if self.handle is not None:
            self.handle.wait()
            self.handle = None

    def wait(self) -> Tensor:
        """The payload, compared with its seal."""
        self.arrive()
        if self.origin is None:
            return self.tensor
        check_seal(self.tensor, self.origin, receiver=self.receiver)
        return self.tensor[:-SEAL_BYTES]


class Mail:
    """Sends and receives the messages of one bucket in one step."""

    def __init__(
        self, transport: Transport, topology: Topology, *, bucket: int, buckets: int, step: int
    ) -> None:
        self._transport, self._topology = transport, topology
        self._bucket, self._buckets, self._step = bucket, buckets, step
        self._sending: list[tuple[Handle, Tensor]] = []

    def origin(self, host: int, share: int) -> Origin:
        """Of what a host's owner of a share encodes."""
        return Origin(step=self._step, bucket=self._bucket, rank=self._topology.owner(host, share))

    def seal(self, tensor: Tensor, origin: Origin) -> Message:
        """Make a message of a payload that has room for the seal behind it."""
        seal(tensor, origin)
        return Message(tensor=tensor, origin=origin, receiver=self._topology.rank)

    def send(self, kind: Kind, tensor: Tensor, rank: int, *, host: int = 0) -> None:
        """Begin to send to a rank; `host` tells messages of one kind apart."""
        handle = self._transport.send(tensor, rank, self._tag(kind, host))
        self._sending.append((handle, tensor))

    def receive_codes(self, kind: Kind, size: int, rank: int, *, host: int, origin: Origin) -> Message:
        """Begin to receive so many encoded bytes."""
        tensor = torch.empty(size + SEAL_BYTES, dtype=torch.uint8)
        handle = self._transport.receive(tensor, rank, self._tag(kind, host))
        return Message(tensor=tensor, origin=origin, receiver=self._topology.rank, handle=handle)

    def receive_numbers(self, count: int, rank: int) -> Message:
        """Begin to receive so many numbers."""
        tensor = torch.empty(count, dtype=torch.float32)
        handle = self._transport.receive(tensor, rank, self._tag(Kind.NUMBERS, 0))
        return Message(tensor=tensor, origin=None, receiver=self._topology.rank, handle=handle)

    def finish(self) -> None:
        """Wait until all that was sent is on its way."""
        for handle, _ in self._sending:
            handle.wait()
        self._sending.clear()

    def _tag(self, kind: Kind, host: int) -> int:
        return (kind * len(self._topology.hosts) + host) * self._buckets + self._bucket
