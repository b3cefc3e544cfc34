"""Gradients in one flat buffer, cut into buckets that are summed over ranks while backward goes on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn

from tandem.parallel.exchange import ExactExchange, Exchange
from tandem.parallel.regions import BucketRegions, find_regions
from tandem.parallel.world import Handle, World

__all__ = ["GradientBuckets", "bucket_bytes_for"]

LARGEST_BYTES = 25 * 2**20
SMALLEST_BYTES = 2**20
OVERLAPPING = 8
"""Buckets that a small model is cut into, so that most of them are under way before backward ends."""

_NUMBER_BYTES = 4
_ALIGNED = 16
"""Numbers to which each gradient's place is rounded up, so that kernels may read 64 aligned bytes at a time."""
_ROW = 1024
"""Numbers whose squares are summed in one go for the norm."""


class GradientBuckets:
    """Every parameter's `.grad` as a view into flat fp32 buckets that never change.

    Parameters lie in reverse order, since backward ends with the first. The cut depends on nothing but the parameters:
    a resumed run sums in the same order as an undisturbed one, bit for bit.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        world: World,
        *,
        slots: int,
        bucket_bytes: int | None = None,
    ) -> None:
        """Slots are numbers of the caller's that are summed with the last bucket."""
        self._world = world
        self._parameters = tuple(reversed(parameters))
        self._places = places = _lay_out(self._parameters)
        total = -(-places[-1] // _ROW) * _ROW
        flat = torch.zeros(total + slots, dtype=torch.float32, device=world.device)
        self.flat, self.gradients, self.slots = flat, flat[:total], flat[total:]
        self._views = self.views(flat)
        limit = (bucket_bytes or bucket_bytes_for(total * _NUMBER_BYTES)) // _NUMBER_BYTES
        self._bucket_of, starts = _fill(places, limit)
        self._bucket_of_parameter: dict[Tensor, int] = dict(
            zip(self._parameters, self._bucket_of, strict=True)
        )
        self._bounds = tuple(pairwise([*starts, total + slots]))
        self.buckets = tuple(flat[start:stop] for start, stop in self._bounds)
        self.exchange: Exchange = ExactExchange(self, world)
        """By which ranks sum; another one may take its place between two updates."""
        self._handles: list[Handle] = []
        self._marks: list[torch.cuda.Event] | None = None
        self._stream: torch.cuda.Stream | None = None
        self._dropped = 0
        self._sending = False
        self._missing: list[int] = []
        for parameter in self._parameters:
            parameter.register_post_accumulate_grad_hook(self.note)  # type: ignore[no-untyped-call]
        self._attach()

    def __len__(self) -> int:
        return len(self.buckets)

    def views(self, flat: Tensor) -> dict[Tensor, Tensor]:
        """By parameter: its part of a tensor that is laid out like `gradients`."""
        starts = zip(self._parameters, self._places, strict=False)
        return {
            parameter: flat[start : start + parameter.numel()].view(parameter.shape)
            for parameter, start in starts
        }

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank gives to the exchange of a step."""
        return self.exchange.sent_bytes

    def regions(self) -> list[BucketRegions]:
        """What of each bucket an exchange may encode, and what it must sum exactly."""
        return find_regions(self._parameters, self._places, self._bounds, slots=len(self.slots))

    def clear(self) -> None:
        """Begin an update: all gradients and slots are zero."""
        self.flat.zero_()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Around the last backward: a bucket is sent as soon as it and all before it are complete."""
        self._missing = [0] * len(self)
        for bucket in self._bucket_of:
            self._missing[bucket] += 1
        self._sending = True
        try:
            yield
        finally:
            self._sending = False

    def note(self, parameter: Tensor) -> None:
        """Hear that a gradient is complete: autograd says so by itself, a kernel that adds to gradients must."""
        bucket = self._bucket_of_parameter[parameter]
        if bucket < self._dropped:
            parameter.grad = None
        elif self._sending:
            self._missing[bucket] -= 1
            self._send(self._complete())

    @contextmanager
    def marking(self) -> Iterator[list[torch.cuda.Event]]:
        """Around the capture of a backward into a CUDA graph: nothing is sent, but marks are set for `send_marked`.

        A mark is set when its bucket is complete, in every replay anew.
        """
        self._marks = []
        try:
            with self.sending():
                yield self._marks
        finally:
            self._marks = None

    def send_marked(self, marks: Sequence[torch.cuda.Event]) -> None:
        """Send each bucket at its mark, while the replay that was just started goes on."""
        if self._world.size == 1:
            return
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._world.device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self._stream):
            for number, mark in enumerate(marks, start=1):
                self._stream.wait_event(mark)
                self._send(number)

    def finish(self) -> None:
        """Send what was not sent and wait for all; slots travel now."""
        self._send(len(self))
        for handle in self._handles:
            handle.wait()
        self._handles.clear()
        self._dropped = 0
        self._attach()

    def restart(self) -> None:
        """Begin the update again after a failure in backward, for the buckets that were not sent yet.

        What was sent is complete; gradients that come for it from now on are dropped.
        """
        self._dropped = len(self._handles)
        self._attach()
        for bucket in self.buckets[self._dropped :]:
            bucket.zero_()

    @property
    def is_whole(self) -> bool:
        """Whether gradients may be added to every bucket: after a restart, not to those that were sent."""
        return not self._dropped

    def norm(self) -> Tensor:
        """The norm of the whole gradient, on the device."""
        # Row by row: one fp32 sum over 61 million squares was seen to be 0.5 % short on a CPU.
        norms = torch.linalg.vector_norm(self.gradients.view(-1, _ROW), dim=1)
        norm: Tensor = torch.linalg.vector_norm(norms)
        return norm

    def _attach(self) -> None:
        for parameter, bucket in zip(self._parameters, self._bucket_of, strict=True):
            parameter.grad = None if bucket < self._dropped else self._views[parameter]

    def _complete(self) -> int:
        """Buckets from the first on that have all gradients; the last one waits for its slots."""
        waiting = len(self._handles if self._marks is None else self._marks)
        while waiting < len(self) - 1 and not self._missing[waiting]:
            waiting += 1
        return waiting

    def _send(self, until: int) -> None:
        if self._marks is not None:
            for _ in range(len(self._marks), until):
                mark = torch.cuda.Event(external=True)  # type: ignore[no-untyped-call]
                mark.record()
                self._marks.append(mark)
            return
        # Every rank sends the buckets in this order, whichever order its gradients come in.
        for number in range(len(self._handles), until):
            self._handles.append(self.exchange.start(number))


def bucket_bytes_for(total_bytes: int) -> int:
    """How large a bucket may be for gradients of so many bytes."""
    return max(SMALLEST_BYTES, min(LARGEST_BYTES, total_bytes // OVERLAPPING))


def _lay_out(parameters: Sequence[nn.Parameter]) -> list[int]:
    """Where each parameter's gradient begins, and where the last one ends."""
    places = [0]
    for parameter in parameters:
        places.append(places[-1] + -(-parameter.numel() // _ALIGNED) * _ALIGNED)
    return places


def _fill(places: list[int], limit: int) -> tuple[list[int], list[int]]:
    """The bucket of each gradient, and where each bucket begins; one above the limit has a bucket to itself."""
    buckets, starts = [], [0]
    for start, stop in pairwise(places):
        if stop - starts[-1] > limit and start > starts[-1]:
            starts.append(start)
        buckets.append(len(starts) - 1)
    return buckets, starts
