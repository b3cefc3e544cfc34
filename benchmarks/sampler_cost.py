"""Measures what the sampler of a host costs: processor time and memory of its process, over a minute."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import command_line, describe_machine, machine_slug

_RESULTS = Path(__file__).parent / "results"
_SETTLE_S = 3.0

_DEFINITIONS = {
    "share_of_a_core": "processor seconds of the sampler's process a second, start-up left out",
    "ms_a_sample": "processor milliseconds of its process for each sample",
    "memory_bytes": "resident memory at the end, pages shared with other processes included",
}


def main() -> None:
    """Sample this host for a while, write the result file, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    options = parser.parse_args()
    result = {
        "benchmark": "sampler_cost",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine({}),
        "command": command_line(),
        "definitions": _DEFINITIONS,
        **measure(options.seconds),
    }
    path = options.out / f"{result['date']}-sampler-cost-{machine_slug()}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['share_of_a_core']:.3%} of a core, {result['ms_a_sample']:.2f} ms a sample")
    print(f"written to {path}")


def measure(seconds: float) -> dict[str, float]:
    """Let the sampler work for so long, and see what its process used."""
    with tempfile.TemporaryDirectory() as run:
        command = [sys.executable, "-m", "tandem.telemetry.sampler", run, "here"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            watched = psutil.Process(process.pid)
            time.sleep(_SETTLE_S)
            begun_s, before = time.monotonic(), watched.cpu_times()
            time.sleep(seconds)
            after, ended_s = watched.cpu_times(), time.monotonic()
            memory = watched.memory_info().rss
            assert process.stdin is not None
            process.stdin.close()
        samples = sum(len(file.read_text().splitlines()) for file in Path(run).rglob("*.jsonl"))
    used_s = after.user + after.system - before.user - before.system
    return {
        "seconds": round(ended_s - begun_s, 1),
        "samples_written": samples,
        "share_of_a_core": round(used_s / (ended_s - begun_s), 6),
        "ms_a_sample": round(1e3 * used_s / (ended_s - begun_s), 3),
        "memory_bytes": memory,
    }


if __name__ == "__main__":
    main()
