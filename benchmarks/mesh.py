"""What the encrypted mesh costs: gradients summed between two hosts of a lab, through the mesh and plainly, in turn.

Needs root. Each round examines the hosts as `tandem doctor` does, once on each kind of network; what counts is the
speed at which ten sums, each as large as the link carries in a moment, are made.
"""

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# A script sees its own folder only, and its siblings are imported by their full name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import command_line, describe_machine, machine_slug

from tandem.lab import Lab
from tandem.launch.doctor.look import look
from tandem.launch.hosts import read_hosts
from tandem.launch.ssh import Ssh

_RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rate", default="1gbit", help="of each host's link; none: as fast as the machine is"
    )
    parser.add_argument("--rounds", type=int, default=5)
    words = parser.parse_args()
    machine = describe_machine({})
    with (
        tempfile.TemporaryDirectory() as folder,
        Lab.up(Path(folder) / "lab", hosts=2, rate=words.rate) as lab,
    ):
        rounds = [_measure(lab, round_) for round_ in range(words.rounds)]
    ratios = [each["mesh"]["bits_per_s"] / each["plain"]["bits_per_s"] for each in rounds]
    result = {
        "what": "gradients summed between two hosts, through the mesh and plainly",
        "machine": machine,
        "command": command_line(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "rate": words.rate,
        "rounds": rounds,
        "mesh_of_plain": {
            "median": statistics.median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
        },
    }
    name = f"{datetime.now(UTC):%Y-%m-%d}-mesh-{words.rate}-{machine_slug()}.json"
    (_RESULTS / name).write_text(json.dumps(result, indent=1) + "\n")
    print(name, result["mesh_of_plain"])


def _measure(lab: Lab, round_: int) -> dict[str, Any]:
    """Both kinds, one after the other, in another order each time."""
    held = {}
    for kind in ("mesh", "plain") if round_ % 2 else ("plain", "mesh"):
        found = look(read_hosts("h1,h2"), Ssh(config=lab.ssh_config), folder="work", trusted=kind == "plain")
        sums = found.sums
        assert sums is not None
        assert not sums.problem, sums.problem
        held[kind] = {
            "bits_per_s": 8 * sums.bus_bytes_per_s,
            "seconds": sums.seconds,
            "summed_bytes": sums.summed_bytes,
            "links": [asdict(link) for link in found.links],
        }
    return held


if __name__ == "__main__":
    main()
