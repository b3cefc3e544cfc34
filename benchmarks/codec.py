"""Measures how fast gradients are encoded in few bits and decoded, beside plain PyTorch operations and a copy."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import torch
from torch import Tensor

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.stopwatch import Stopwatch
from benchmarks.machine import command_line, describe_machine, machine_slug

from tandem.parallel.codec import BLOCK, GradientCodec
from tandem.parallel.codec_plain import PlainCodec
from tandem.parallel.codec_tables import Sum, build_tables

_RESULTS = Path(__file__).parent / "results"
_SEED = 1
_WARM_UPS = 2

_DEFINITIONS = {
    "sides": "tandem: GradientCodec; plain: the same codes by PyTorch's operations on whole tensors; copy: of as many "
    "fp32 numbers. Taken in turn, A B C A B C",
    "encode": "from one tensor; with residual: from gradients * a number + residual, each in a tensor of its own. Both "
    "write what remains",
    "ms": "of wall time for all numbers: median and least of the repetitions. On a GPU replays of a CUDA graph",
    "ms_of_10m": "on a CPU: the median for ten million numbers; thread_ms_of_10m: the median of the processor time of "
    "the thread, which leaves out what other processes took, but not what they pushed out of the caches",
    "lost": "share of the square that is not sent, of Gaussian numbers as large as their second moments say",
}

Calls = dict[tuple[str, str], Callable[[], object]]


def main() -> None:
    """Measure, write the result file and print the figures."""
    options = _read_options()
    torch.set_num_threads(options.threads)
    machine = describe_machine({})
    device = torch.device(options.device)
    numbers = options.numbers // BLOCK * BLOCK
    calls, lost = _prepare(numbers, options.bits, device)
    if device.type == "cuda":
        rows = _time_on_gpu(calls, device)
    else:
        rows = _time_on_cpu(calls, repetitions=options.repetitions, numbers=numbers)
    result = {
        "benchmark": "codec",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "command": command_line(),
        "definitions": _DEFINITIONS,
        "numbers": numbers,
        "bits": options.bits,
        "threads": options.threads,
        "lost": lost,
        "rows": rows,
    }
    path = options.out / f"{result['date']}-codec-{machine_slug(device.type)}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    for row in rows:
        print(", ".join(f"{name} {text}" for name, text in row.items()))
    print(f"lost {lost:.5f}")
    print(f"written to {path}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--numbers", type=int, help="10,000,000 on a CPU, 61,000,000 on a GPU")
    parser.add_argument("--bits", type=int, default=4, choices=(1, 2, 4, 8))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    options = parser.parse_args()
    options.numbers = options.numbers or (61_000_000 if options.device == "cuda" else 10_000_000)
    return options


def _prepare(numbers: int, bits: int, device: torch.device) -> tuple[Calls, float]:
    """What is timed, and what the codec loses."""
    torch.manual_seed(_SEED)
    root, gradient, residual = (torch.randn(numbers, device=device) for _ in range(3))
    gradient *= root
    second = root.square_()
    unscale = torch.tensor(1.0, device=device)
    codec = GradientCodec(bits=bits, seed=_SEED, device=device)
    plain = PlainCodec(build_tables(bits=bits, seed=_SEED, device=device))
    packed = torch.zeros(codec.packed_bytes(numbers), dtype=torch.uint8, device=device)
    codes, scales = codec.packed(packed).codes, codec.packed(packed).scales
    out = torch.zeros_like(gradient)
    codec.encode(gradient, second, packed, out)
    lost = _lost(gradient, out, second)
    alone = Sum(values=gradient, residual=None, unscale=1.0)
    both = Sum(values=gradient, residual=residual, unscale=unscale)
    calls: Calls = {
        ("encode", "tandem"): lambda: codec.encode(gradient, second, packed, out),
        ("encode", "plain"): lambda: plain.encode(alone, second, codes, scales, out),
        ("encode", "copy"): lambda: out.copy_(gradient),
        ("encode with residual", "tandem"): lambda: codec.encode(
            gradient, second, packed, out, residual=residual, unscale=unscale
        ),
        ("encode with residual", "plain"): lambda: plain.encode(both, second, codes, scales, out),
        ("decode", "tandem"): lambda: codec.decode(packed, second, out),
        ("decode", "plain"): lambda: plain.decode(codes, scales, second, out, add=False),
        ("decode and add", "tandem"): lambda: codec.decode(packed, second, out, add=True),
        ("decode and add", "plain"): lambda: plain.decode(codes, scales, second, out, add=True),
    }
    return calls, lost


def _lost(x: Tensor, remainder: Tensor, second: Tensor) -> float:
    root = second.view(-1, BLOCK).sqrt()
    scaling = root + 0.1 * root.mean(1, keepdim=True)
    lost, all_of_it = ((each.view(-1, BLOCK) / scaling).square().mean().item() for each in (remainder, x))
    return round(lost / all_of_it, 6)


def _time_on_gpu(calls: Calls, device: torch.device) -> list[Mapping[str, object]]:
    stopwatch = Stopwatch(device)
    rows: list[Mapping[str, object]] = []
    with stopwatch.stream():
        for (work, side), call in calls.items():
            timed = stopwatch.time(call)
            rows.append({"work": work, "side": side, "ms": round(timed.us / 1e3, 4), "how": timed.how})
    return rows


def _time_on_cpu(calls: Calls, *, repetitions: int, numbers: int) -> list[Mapping[str, object]]:
    walls: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    threads: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    for round_ in range(-_WARM_UPS, repetitions):
        for key, call in calls.items():
            wall_s, thread_s = time.perf_counter(), time.thread_time()
            call()
            if round_ >= 0:
                walls[key].append(1e3 * (time.perf_counter() - wall_s))
                threads[key].append(1e3 * (time.thread_time() - thread_s))
    of_10m = 1e7 / numbers
    return [
        {
            "work": work,
            "side": side,
            "ms": round(statistics.median(taken), 2),
            "least_ms": round(min(taken), 2),
            "ms_of_10m": round(statistics.median(taken) * of_10m, 2),
            "thread_ms_of_10m": round(statistics.median(threads[work, side]) * of_10m, 2),
        }
        for (work, side), taken in walls.items()
    ]


if __name__ == "__main__":
    main()
