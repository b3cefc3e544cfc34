"""Exchanges gradients of a base Transformer between hosts of a lab, over links of several speeds, in each mode.

The bytes, the links, the buckets and the exchange are real. Computing, encoding and decoding are waits that take no
processor, as long as they take on GPUs. Needs root.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tandem.lab import Lab

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import command_line, describe_machine, machine_slug

_RANK = Path(__file__).with_name("wire_rank.py")
_RESULTS = Path(__file__).parent / "results"
_PORT = 29_611
_PATIENCE_S = 1200

_DEFINITIONS = {
    "hosts": "network namespaces of one machine, one rank each, joined by links of the given rate in each direction",
    "step_s": "mean over the steps, from a barrier of all ranks until the last of them has all gradients",
    "computing": "a wait of compute_s, a third of it forward; a bucket's gradients are complete when as much of "
    "backward has passed as their part of all parameters, in the order of the buckets of a real run: the embedding's "
    "are the last",
    "encoding": "waits as long as the codec takes on one H200 for 61 million numbers (encode_s, decode_s), by number; "
    "what else an exchange does with its tensors, which a GPU would do, is done by the processor and counts",
    "share": "step without exchange / step: of the throughput that a network without cost would leave",
    "of_one_host": "hosts * share: throughput against one host, which exchanges nothing with others",
    "network": "plain gloo; the encrypted mesh is measured by benchmarks/mesh.py",
}


def main() -> None:
    """Measure every number of hosts at every rate, print the table and write the result file."""
    options = _read_options()
    rows = [
        row
        for hosts in options.hosts
        for row in _measure(hosts, options.rates if hosts == options.hosts[0] else options.rates[:2], options)
    ]
    result = {
        "benchmark": "wire",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine({}),
        "command": command_line(),
        "definitions": _DEFINITIONS,
        "compute_s": options.compute_s,
        "encode_s": options.encode_s,
        "decode_s": options.decode_s,
        "rows": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{result['date']}-wire-{machine_slug()}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    _print(rows)
    sys.stdout.write(f"written: {path.name}\n")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--hosts", type=int, nargs="+", default=[2, 4], help="the first at all rates, others at two"
    )
    parser.add_argument("--rates", nargs="+", default=["1gbit", "500mbit", "300mbit", "100mbit"])
    parser.add_argument("--compute-s", type=float, default=0.45, help="of a step: the reference run's")
    parser.add_argument("--encode-s", type=float, default=1.1e-3, help="of 61 million numbers")
    parser.add_argument("--decode-s", type=float, default=0.25e-3, help="of 61 million numbers")
    parser.add_argument("--vocabulary", type=int, default=32_768, help="fewer for a small trial")
    parser.add_argument("--preset", default="base")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each mode, but at least three steps")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder of the result file")
    return parser.parse_args()


def _measure(hosts: int, rates: Sequence[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder, Lab.up(Path(folder) / "lab", hosts=hosts) as lab:
        for rate in rates:
            for host in lab.hosts:
                lab.link(host, "rate", rate)
            for row in _run(lab, options):
                rows.append({"hosts": hosts, "rate": rate, **row})
                sys.stdout.write(f"{rows[-1]}\n")
                sys.stdout.flush()
    return rows


def _run(lab: Lab, options: argparse.Namespace) -> list[dict[str, Any]]:
    """All modes one after the other; what rank 0 says."""
    keys = ("compute_s", "encode_s", "decode_s", "vocabulary", "preset", "seconds")
    asked = json.dumps({key: getattr(options, key) for key in keys})
    processes = []
    for rank, host in enumerate(lab.hosts):
        values = {
            "RANK": rank,
            "WORLD_SIZE": len(lab.hosts),
            "LOCAL_RANK": 0,
            "LOCAL_WORLD_SIZE": 1,
            "MASTER_ADDR": lab.address(lab.hosts[0]),
            "MASTER_PORT": _PORT,
            "WIRE_HOST": host,
            "OMP_NUM_THREADS": 1,
        }
        words = [
            "env",
            *(f"{name}={value}" for name, value in values.items()),
            sys.executable,
            str(_RANK),
            asked,
        ]
        processes.append(lab.start(host, words, stdout=subprocess.PIPE))
    said = [process.communicate(timeout=_PATIENCE_S)[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"a rank failed: {said}")
    rows: list[dict[str, Any]] = json.loads(said[0])
    return rows


def _print(rows: Sequence[dict[str, Any]]) -> None:
    table = Table("hosts", "rate", "mode", "step", "share", "of one host", "sent")
    for row in rows:
        table.add_row(
            str(row["hosts"]),
            row["rate"],
            row["mode"],
            f"{row['step_s']:.3f} s",
            f"{100 * row['share']:.1f} %",
            f"{row['of_one_host']:.2f}",
            f"{row['sent_bytes'] / 1e6:.1f} MB",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
