"""`python -m tandem.launch.doctor.reduce`: one rank of a measurement of how fast gradients are summed."""

import json
import os
import statistics
import sys
import time
from threading import Thread

import torch

from tandem.parallel.buckets import bucket_bytes_for
from tandem.parallel.world import World, open_world

__all__ = ["bucket_sizes", "main"]

_REPEATS = 10
_NUMBER_BYTES = 4


def bucket_sizes(gradient_bytes: int, *, most_bytes: int) -> list[int]:
    """Numbers in each bucket of a step's gradients, of as many as `most_bytes` allow; at least one, if need be cut."""
    bucket = bucket_bytes_for(gradient_bytes)
    bucket = min(bucket, gradient_bytes, max(most_bytes, _NUMBER_BYTES * 1024))
    count = max(1, min(gradient_bytes, most_bytes) // bucket)
    return [bucket // _NUMBER_BYTES] * count


def main() -> None:
    """Sum as the line on standard input says, and print how long it took; ends when that input does."""
    asked = json.loads(sys.stdin.readline())
    Thread(target=_end_with_input, daemon=True).start()
    sizes = bucket_sizes(asked["gradient_bytes"], most_bytes=asked["most_bytes"])
    world = open_world(asked["device"], timeout_s=asked["limit_s"])
    buckets = [torch.zeros(size, device=world.device) for size in sizes]
    world.sum(buckets[0])
    seconds = statistics.median(_sum(world, buckets) for _ in range(_REPEATS))
    held = {"summed_bytes": sum(sizes) * _NUMBER_BYTES, "seconds": seconds}
    world.close()
    sys.stdout.write(json.dumps(held) + "\n")
    sys.stdout.flush()
    os._exit(0)  # without torch's tidying up, which takes a second


def _sum(world: World, buckets: list[torch.Tensor]) -> float:
    world.barrier()
    begin = time.monotonic()
    for handle in [world.start_sum(bucket) for bucket in buckets]:
        handle.wait()
    buckets[-1][-1].item()
    return time.monotonic() - begin


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
