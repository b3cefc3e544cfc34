"""Gradients that are encoded on their way between hosts: summed exactly inside each host, decoded alike on every rank.

For each bucket, in the same order on all ranks:

1. The ranks of a host send each owner of a share their numbers of it, which it sums in fp32.
2. The owner encodes the sum, with what was left over before. Two hosts swap the bytes. Where there are more, each host
   gets its part of the share from all others, sums these in fp32, encodes the sum again and sends that to all.
3. Owners pass the bytes on inside their host, and every rank decodes the very same bytes in the same order.

What is not encoded is summed by the backend's all-reduce meanwhile.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from tandem.parallel.agreement import AgreementCheck
from tandem.parallel.coded_bucket import CodedBucket, Coding
from tandem.parallel.encoding import Codec
from tandem.parallel.exchange import BucketLayout, ExchangeMode, name_of
from tandem.parallel.lane import Lane
from tandem.parallel.mail import Mail
from tandem.parallel.messages import SEAL_BYTES, Transport
from tandem.parallel.regions import gather, scatter
from tandem.parallel.residual import Residual
from tandem.parallel.shares import ShareLayout, own_layout
from tandem.parallel.topology import Topology
from tandem.parallel.world import Handle, World

__all__ = ["CodedExchange", "message_bytes"]

_NUMBER_BYTES = 4
_STAGES = ("encode", "sum", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """The handle of a bucket."""

    exact: Handle | None
    coded: "Future[torch.cuda.Event | None]"
    name: str
    world: World
    put_back: Callable[[], None]
    """Puts what was summed exactly where it belongs."""

    def wait(self) -> None:
        """Return when the sum is there; on a GPU, make what is queued from now on wait for it."""
        if self.exact is not None:
            self.exact.wait()
            self.put_back()
        with self.world.pulse.waiting(self.name):
            decoded = self.coded.result()
        if decoded is not None:
            torch.cuda.current_stream(self.world.device).wait_event(decoded)


class CodedExchange:
    """Sums gradients through a codec between hosts, and exactly inside them."""

    def __init__(
        self,
        mode: ExchangeMode,
        codec: Codec,
        *,
        layout: BucketLayout,
        second_moment: Tensor,
        topology: Topology,
        transport: Transport,
        world: World,
    ) -> None:
        """`second_moment` is Adam's, laid out as the buckets are; it must not change while a bucket is on its way."""
        self.mode: ExchangeMode = mode
        self.topology = topology
        self._transport, self._world = transport, world
        self.regions = layout.regions()
        self.shares = own_layout(self.regions, topology)
        self.owned = self.shares.owned(topology.local, topology.host) if topology.owns_share else []
        self.residuals = self._build_residuals(world.device)
        self._coding = Coding(
            codec=codec,
            flat=layout.flat,
            second_moment=second_moment,
            layout=self.shares,
            topology=topology,
            residuals=self.residuals,
        )
        self._exact = [layout.flat.new_empty(region.exact_numbers) for region in self.regions]
        self._lanes = {name: Lane(name, world.device) for name in _STAGES}
        self._streams = {name: _build_stream(world.device) for name in _STAGES}
        self._step = 0
        self._scale: Tensor | None = None
        self.exact_bytes = _NUMBER_BYTES * sum(region.exact_numbers for region in self.regions)
        """Bytes of all that is summed exactly."""

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank sends to other hosts in a step, and gives to be summed exactly."""
        topology, codec = self.topology, self._coding.codec
        if not topology.owns_share:
            return self.exact_bytes
        sent = message_bytes(self.shares, codec, host=topology.host, share=topology.local)
        return self.exact_bytes + sent

    def link_bytes(self, codec: Codec) -> int:
        """Bytes that the busiest host sends to others in a step through this codec, but for what goes exactly."""
        hosts, shares = range(self.shares.hosts), range(self.shares.shares)
        return max(
            sum(message_bytes(self.shares, codec, host=host, share=share) for share in shares)
            for host in hosts
        )

    def use(self, mode: ExchangeMode, codec: Codec) -> None:
        """Encode in another way from now on; residuals go on."""
        self.mode, self._coding.codec = mode, codec

    @property
    def busy_s(self) -> float:
        """Seconds that the codec took since the step began, over all threads of this rank."""
        return sum(self._coding.busy_s.values())

    def begin(self, step: int, *, scale: Tensor | None, check: AgreementCheck | None = None) -> None:
        """Say which step the next buckets are of, what their gradients were multiplied by, and who looks on."""
        self._step, self._scale = step, scale
        self._coding.check = check
        self._coding.busy_s.clear()

    def start(self, number: int) -> Handle:
        """Begin to exchange a bucket, which must not be touched before the handle was waited for."""
        region, name = self.regions[number], name_of(number)
        exact = gather(self._coding.flat, region.exact, self._exact[number])
        handle = self._world.start_sum(exact, name) if len(exact) else None
        self._world.pulse.begin(name)
        bucket = self._build_bucket(number)
        ready = _mark(self._world.device)
        encoded = self._lanes["encode"].submit(partial(self._run, "encode", bucket.encode, after=ready))
        summed = self._lanes["sum"].submit(partial(self._run, "sum", bucket.sum_parts, waits_for=encoded))
        decoded = self._lanes["decode"].submit(partial(self._run, "decode", bucket.decode, waits_for=summed))
        return _Pending(
            exact=handle,
            coded=decoded,
            name=name,
            world=self._world,
            put_back=lambda: scatter(exact, region.exact, self._coding.flat),
        )

    def commit(self, skipped: Tensor) -> None:
        """End the step: keep what encoding has left over, unless `skipped` is 1."""
        for residual in self.residuals.values():
            residual.commit(skipped)

    def close(self) -> None:
        """Let the threads end."""
        for lane in self._lanes.values():
            lane.close()

    def _build_residuals(self, device: torch.device) -> dict[str, Residual]:
        if not self.owned:
            return {}
        residuals = {"share": Residual(self.owned[-1].in_share[1], device)}
        if self.shares.has_parts:
            residuals["part"] = Residual(self.owned[-1].in_part[1], device)
        return residuals

    def _build_bucket(self, number: int) -> CodedBucket:
        mail = Mail(self._transport, self.topology, bucket=number, buckets=len(self.regions), step=self._step)
        return CodedBucket(
            coding=self._coding,
            mail=mail,
            number=number,
            regions=self.regions[number],
            owned=self.owned[number] if self.owned else None,
            scale=self._scale,
        )

    def _run(
        self,
        stage: str,
        work: Callable[[], None],
        *,
        after: torch.cuda.Event | None = None,
        waits_for: "Future[torch.cuda.Event | None] | None" = None,
    ) -> torch.cuda.Event | None:
        """Do a stage of a bucket in its thread, behind the one before; gives the moment when a GPU has done it."""
        if waits_for is not None:
            after = waits_for.result()
        stream = self._streams[stage]
        if stream is None:
            work()
            return None
        with torch.cuda.stream(stream):
            if after is not None:
                stream.wait_event(after)
            work()
            return _mark(self._world.device)


def message_bytes(layout: ShareLayout, codec: Codec, *, host: int, share: int) -> int:
    """Bytes that a host's owner of a share sends to other hosts in a step."""
    sent = 0
    for bucket in range(len(layout.starts) - 1):
        others = [each for each in range(layout.hosts) if each != host]
        codes = [layout.coded(bucket, share, host)] * len(others)
        parts = [layout.part(bucket, share, each) for each in others] if layout.has_parts else []
        for start, stop in (*codes, *parts):
            sent += codec.packed_bytes(stop - start) + SEAL_BYTES if stop > start else 0
    return sent


def _build_stream(device: torch.device) -> torch.cuda.Stream | None:
    return torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]


def _mark(device: torch.device) -> torch.cuda.Event | None:
    """The moment when all that was queued so far on the current stream is done."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event
