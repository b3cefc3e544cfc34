"""One bucket on its way through a coded exchange: three stages, each of which is done in a thread of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import torch
from torch import Tensor

from tandem.parallel.agreement import AgreementCheck
from tandem.parallel.encoding import Codec
from tandem.parallel.mail import Kind, Mail, Message
from tandem.parallel.messages import SEAL_BYTES
from tandem.parallel.regions import BucketRegions, gather, scatter
from tandem.parallel.residual import Residual
from tandem.parallel.shares import Owned, Range, ShareLayout
from tandem.parallel.topology import Topology

__all__ = ["CodedBucket", "Coding"]


@dataclass(slots=True, kw_only=True)
class Coding:
    """What all buckets of an exchange share."""

    codec: Codec
    """Another may take its place between two steps."""
    flat: Tensor
    """The gradients, and the slots behind them."""
    second_moment: Tensor
    layout: ShareLayout
    topology: Topology
    residuals: Mapping[str, Residual]
    """`share`, and `part` where each host sums a part; none on a rank that owns no share."""
    check: AgreementCheck | None = None
    """Of the step, where it is checked."""
    busy_s: dict[str, float] = field(default_factory=dict)
    """By stage: seconds that the codec took."""

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Count the block as work of the codec; no two threads do the same stage."""
        begun = perf_counter()
        yield
        self.busy_s[stage] = self.busy_s.get(stage, 0.0) + perf_counter() - begun


@dataclass(slots=True, kw_only=True)
class CodedBucket:
    """A bucket of one step. Every rank does the stages of its buckets in the same order."""

    coding: Coding
    mail: Mail
    number: int
    regions: BucketRegions
    owned: Owned | None
    """None on a rank that owns no share."""
    scale: Tensor | None
    """What the gradients were multiplied by; None for 1."""
    _codes: dict[tuple[int, int], Message] = field(default_factory=dict)
    """By share and host: what every rank decodes."""
    _parts: dict[int, Message] = field(default_factory=dict)
    """By host: its numbers of the part that this rank sums."""
    _own_part: Tensor | None = None

    # --- the first stage ---

    def encode(self) -> None:
        """Sum inside the host, encode the own share and begin to send it."""
        values = gather(self.coding.flat, self.regions.coded, self._empty())
        if self.coding.check is not None:
            self.coding.check.note_gradients(self.number, values, unscale=self._unscale())
        self._offer_numbers(values)
        if self.owned is None:
            return
        share = self._sum_in_host(values, self.owned.share)
        moment = self._moments()[slice(*self.owned.share)]
        if self.coding.layout.has_parts:
            self._send_parts(self.owned, share, moment)
        else:
            self._swap_codes(self._encode("share", share, moment, self.owned.in_share, self._unscale()))

    def _offer_numbers(self, values: Tensor) -> None:
        """Send the other owners of this host their shares."""
        topology, layout = self.coding.topology, self.coding.layout
        for share in range(layout.shares):
            start, stop = layout.share(self.number, share)
            owner = topology.owner(topology.host, share)
            if owner != topology.rank and start < stop:
                self.mail.send(Kind.NUMBERS, _to_host(values[start:stop]), owner)

    def _sum_in_host(self, values: Tensor, share: Range) -> Tensor:
        """The own share, summed over the ranks of this host in their order."""
        topology, own = self.coding.topology, values[slice(*share)]
        if not topology.neighbours or not len(own):
            return own
        offered = {rank: self.mail.receive_numbers(len(own), rank) for rank in topology.neighbours}
        total = torch.zeros_like(own)
        for rank in topology.hosts[topology.host]:
            total += own if rank == topology.rank else offered[rank].wait().to(own.device)
        return total

    def _send_parts(self, owned: Owned, share: Tensor, moment: Tensor) -> None:
        """Among more than two hosts: send each its part of the own share, and receive the own part from each."""
        topology, residual = self.coding.topology, self.coding.residuals["share"]
        for host in range(len(topology.hosts)):
            begin, end = (
                each - owned.share[0] for each in self.coding.layout.part(self.number, topology.local, host)
            )
            inside = (owned.in_share[0] + begin, owned.in_share[0] + end)
            if host == topology.host:
                # It goes nowhere before it is summed, so it is not rounded.
                self._own_part = share[begin:end] * self._unscale() + residual.current[slice(*inside)]
                residual.pending[slice(*inside)] = 0.0
                continue
            message = self._encode("share", share[begin:end], moment[begin:end], inside, self._unscale())
            owner = topology.owner(host, topology.local)
            if message is not None:
                self.mail.send(Kind.PART, message.tensor, owner)
            if size := owned.part[1] - owned.part[0]:
                self._parts[host] = self._receive(Kind.PART, size, owner, host=host, share=topology.local)

    # --- the second stage ---

    def sum_parts(self) -> None:
        """Among more than two hosts: sum the own part over all of them, and send all what that is encoded to."""
        if self.owned is None or self._own_part is None:
            return
        moment, total = self._moments()[slice(*self.owned.part)], torch.zeros_like(self._own_part)
        for host in range(len(self.coding.topology.hosts)):
            if host == self.coding.topology.host:
                total += self._own_part
            elif host in self._parts:
                self._decode(self._parts[host], moment, total, stage="sum", add=True)
        self._swap_codes(self._encode("part", total, moment, self.owned.in_part, 1.0))

    def _swap_codes(self, message: Message | None) -> None:
        """Send the owners of the same share the codes that all ranks decode, and receive theirs."""
        topology, share = self.coding.topology, self.coding.topology.local
        if message is not None:
            self._codes[share, topology.host] = message
        for host in range(len(topology.hosts)):
            if host == topology.host:
                continue
            owner = topology.owner(host, share)
            if message is not None:
                self.mail.send(Kind.CODES, message.tensor, owner)
            if size := self._coded_size(share, host):
                self._codes[share, host] = self._receive(Kind.CODES, size, owner, host=host, share=share)

    # --- the third stage ---

    def decode(self) -> None:
        """Pass codes on inside the host, and put what all of them stand for in place of the gradients."""
        if self.owned is not None:
            self._pass_on()
        self._await_copies()
        values, moments, layout = self._empty(), self._moments(), self.coding.layout
        for share in range(layout.shares):
            for host in range(layout.hosts):
                if message := self._codes.get((share, host)):
                    place = slice(*layout.coded(self.number, share, host))
                    # Between two hosts both have encoded the same numbers' sums; else each number is in one message.
                    add = not layout.has_parts and host > 0
                    self._decode(message, moments[place], values[place], stage="decode", add=add)
        if self.coding.check is not None:
            self._check(self.coding.check, values)
        if self.scale is not None:
            values *= self.scale
        scatter(values, self.regions.coded, self.coding.flat)
        self.mail.finish()

    def _check(self, check: AgreementCheck, values: Tensor) -> None:
        check.note_decoded(self.number, values)
        if self.owned is not None:
            check.note_residuals(self.number, self.owned, self.coding.residuals)

    def _pass_on(self) -> None:
        topology, share = self.coding.topology, self.coding.topology.local
        for host in range(len(topology.hosts)):
            if message := self._codes.get((share, host)):
                message.arrive()
                for rank in topology.neighbours:
                    self.mail.send(Kind.COPY, message.tensor, rank, host=host)

    def _await_copies(self) -> None:
        topology = self.coding.topology
        for share in range(self.coding.layout.shares):
            owner = topology.owner(topology.host, share)
            if owner == topology.rank:
                continue
            for host in range(len(topology.hosts)):
                if size := self._coded_size(share, host):
                    self._codes[share, host] = self._receive(
                        Kind.COPY, size, owner, host=host, share=share, tag_host=host
                    )

    # --- what stages share ---

    def _encode(
        self, name: str, values: Tensor, moment: Tensor, inside: Range, unscale: float | Tensor
    ) -> Message | None:
        """A message of numbers, whose residual lies `inside`; None of no numbers."""
        if not len(values):
            return None
        codec, residual = self.coding.codec, self.coding.residuals[name]
        size = codec.packed_bytes(len(values))
        tensor = torch.empty(size + SEAL_BYTES, dtype=torch.uint8, pin_memory=values.is_cuda)
        with self.coding.timed("encode" if name == "share" else "sum"):
            codes = (
                torch.empty(size, dtype=torch.uint8, device=values.device)
                if values.is_cuda
                else tensor[:size]
            )
            codec.encode(
                values,
                moment,
                codes,
                residual.pending[slice(*inside)],
                residual=residual.current[slice(*inside)],
                unscale=unscale,
            )
            if values.is_cuda:
                tensor[:size].copy_(codes, non_blocking=True)
                torch.cuda.current_stream(values.device).synchronize()
        topology = self.coding.topology
        return self.mail.seal(tensor, self.mail.origin(topology.host, topology.local))

    def _decode(self, message: Message, moment: Tensor, out: Tensor, *, stage: str, add: bool) -> None:
        codes = message.wait()
        with self.coding.timed(stage):
            self.coding.codec.decode(codes.to(out.device, non_blocking=True), moment, out, add=add)

    def _receive(
        self, kind: Kind, size: int, sender: int, *, host: int, share: int, tag_host: int = 0
    ) -> Message:
        """Begin to receive the codes of so many numbers that a host's owner of a share has encoded."""
        return self.mail.receive_codes(
            kind,
            self.coding.codec.packed_bytes(size),
            sender,
            host=tag_host,
            origin=self.mail.origin(host, share),
        )

    def _coded_size(self, share: int, host: int) -> int:
        start, stop = self.coding.layout.coded(self.number, share, host)
        return stop - start

    def _moments(self) -> Tensor:
        return gather(self.coding.second_moment, self.regions.coded, self._empty())

    def _empty(self) -> Tensor:
        return torch.empty(self.regions.coded_numbers, dtype=torch.float32, device=self.coding.flat.device)

    def _unscale(self) -> float | Tensor:
        return 1.0 if self.scale is None else self.scale.reciprocal()


def _to_host(tensor: Tensor) -> Tensor:
    """The tensor itself on a CPU; of a GPU's a copy that has landed."""
    if not tensor.is_cuda:
        return tensor
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    copy.copy_(tensor, non_blocking=True)
    torch.cuda.current_stream(tensor.device).synchronize()
    return copy
