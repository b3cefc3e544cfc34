"""One rank of benchmarks/wire.py: does steps that only wait, with the exchange of a real run in each mode."""

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from tandem.config import ModelSection
from tandem.model import build_model
from tandem.parallel.buckets import GradientBuckets, bucket_bytes_for
from tandem.parallel.coded_exchange import CodedExchange
from tandem.parallel.encoding import Codec
from tandem.parallel.exchange import MODES, ExactExchange, Exchange, ExchangeMode
from tandem.parallel.messages import TorchTransport
from tandem.parallel.topology import Topology
from tandem.parallel.world import World, open_world
from tandem.train.exchanger import build_codec

_TIMEOUT_S = 600.0
_NUMBERS = 61e6
_FORWARD = 1 / 3
_LEAST_STEPS, _MOST_STEPS = 3, 30
THIN = 16
"""Numbers of a gradient that one stands for where gradients are encoded: what GPUs do with them in their own memory,
such as gathering a bucket, would else be done by the processor. Messages are as long as they are in a run."""


class WaitingCodec:
    """Messages as long as a codec's, made of nothing, in the time that a GPU takes for them."""

    def __init__(self, codec: Codec, *, encode_s: float, decode_s: float) -> None:
        self._codec, self._encode_s, self._decode_s = codec, encode_s / _NUMBERS, decode_s / _NUMBERS

    def packed_bytes(self, count: int) -> int:
        """As the codec, for as many numbers as each one stands for."""
        return self._codec.packed_bytes(count * THIN)

    def encode(self, values: Tensor, *_: Tensor, **__: Any) -> None:
        """Take as long."""
        time.sleep(self._encode_s * len(values) * THIN)

    def decode(self, packed: Tensor, second_moment: Tensor, out: Tensor, *, add: bool = False) -> None:  # noqa: ARG002
        """Take as long."""
        time.sleep(self._decode_s * len(out) * THIN)


def main() -> None:
    """Measure what the argument asks for; rank 0 prints the rows."""
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    world = open_world("cpu", timeout_s=_TIMEOUT_S)
    pieces = asked["vocabulary"]
    model = build_model(
        ModelSection(preset=asked["preset"]),
        source_vocabulary=pieces,
        target_vocabulary=pieces,
        pad=0,
        seed=1,
    )
    parameters = list(model.parameters())
    buckets = GradientBuckets(parameters, world, slots=16)
    limit = bucket_bytes_for(buckets.gradients.numel() * 4) // THIN
    thin = GradientBuckets([_thin(each) for each in parameters], world, slots=16, bucket_bytes=limit)
    coded = CodedExchange(
        "bf16",
        build_codec("bf16", seed=1, device=world.device),
        layout=thin,
        second_moment=torch.zeros_like(thin.gradients),
        topology=Topology.gather(world, os.environ["WIRE_HOST"]),
        transport=TorchTransport(timeout_s=_TIMEOUT_S),
        world=world,
    )
    rows = list(_measure(asked, world, buckets, thin, coded))
    coded.close()
    world.barrier()
    if world.rank == 0:
        print(json.dumps(rows))
    world.close()


def _thin(parameter: nn.Parameter) -> nn.Parameter:
    """A matrix of which each number stands for THIN; vectors, which are summed exactly, stay as long as they are."""
    rows, *columns = parameter.shape
    return nn.Parameter(torch.empty(rows, columns[0] // THIN) if columns else torch.empty(rows))


def _measure(
    asked: dict[str, Any],
    world: World,
    buckets: GradientBuckets,
    thin: GradientBuckets,
    coded: CodedExchange,
) -> Iterator[dict[str, Any]]:
    alone_s = _steps(None, asked, world, buckets)
    yield _row("none", alone_s, alone_s, 0, world)
    for mode in MODES:
        if mode == "exact":
            step_s = _steps(ExactExchange(buckets, world), asked, world, buckets)
            sent = round(2 * (world.size - 1) / world.size * buckets.flat.numel() * 4)
        else:
            coded.use(mode, _waiting(mode, asked))
            step_s = _steps(coded, asked, world, thin)
            sent = coded.sent_bytes
        yield _row(mode, step_s, alone_s, sent, world)


def _waiting(mode: ExchangeMode, asked: dict[str, Any]) -> Codec:
    # Rounding to bfloat16 and back is no work for a GPU.
    times = {"encode_s": 0.0, "decode_s": 0.0}
    if mode == "packed":
        times = {name: asked[name] for name in times}
    return WaitingCodec(build_codec(mode, seed=1, device="cpu"), **times)  # type: ignore[arg-type]


def _row(mode: str, step_s: float, alone_s: float, sent: int, world: World) -> dict[str, Any]:
    share = alone_s / step_s
    return {
        "mode": mode,
        "step_s": round(step_s, 5),
        "share": round(share, 4),
        "of_one_host": round(world.size * share, 3),
        "sent_bytes": sent,
    }


def _steps(exchange: Exchange | None, asked: dict[str, Any], world: World, buckets: GradientBuckets) -> float:
    """Mean seconds of a step, after one that does not count."""
    first_s = _step(exchange, asked, world, buckets, step=1)
    wanted = torch.tensor([asked["seconds"] / first_s], dtype=torch.float64)
    world.smallest(wanted)
    count = max(_LEAST_STEPS, min(_MOST_STEPS, math.floor(float(wanted))))
    return sum(_step(exchange, asked, world, buckets, step=step) for step in range(2, 2 + count)) / count


def _step(
    exchange: Exchange | None, asked: dict[str, Any], world: World, buckets: GradientBuckets, *, step: int
) -> float:
    world.barrier()
    begun = time.perf_counter()
    if isinstance(exchange, CodedExchange):
        exchange.begin(step, scale=None)
    forward_s = asked["compute_s"] * _FORWARD
    backward_s = asked["compute_s"] - forward_s
    done = accumulate(len(bucket) / len(buckets.flat) for bucket in buckets.buckets)
    handles = []
    for number, part in enumerate(done):
        left_s = begun + forward_s + backward_s * part - time.perf_counter()
        time.sleep(max(0.0, left_s))
        if exchange is not None:
            handles.append(exchange.start(number))
    for handle in handles:
        handle.wait()
    world.barrier()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
