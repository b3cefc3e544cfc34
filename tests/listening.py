"""What listens in a network namespace, as `ss` tells it."""

import re
import subprocess
from collections.abc import Mapping
from ipaddress import ip_address

__all__ = ["add", "listeners", "outside", "without_launchers"]

LAUNCHERS = {
    "mpirun",
    "orted",
    "prted",
    "prterun",
    "slurmctld",
    "slurmd",
    "slurmstepd",
    "srun",
    "sshd",
}
"""Their listeners are theirs: Tandem can neither close nor guard them."""


def listeners(namespace: str) -> dict[str, set[str]]:
    """Programs by address and port, over TCP or UDP, in a network namespace."""
    command = ["ip", "netns", "exec", namespace, "ss", "--no-header", "-lntup"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[4]: set(re.findall(r'"([^"]+)"', line)) for line in lines}


def add(seen: dict[str, set[str]], more: Mapping[str, set[str]]) -> None:
    for place, programs in more.items():
        seen.setdefault(place, set()).update(programs)


def without_launchers(seen: Mapping[str, set[str]]) -> set[str]:
    """A program that ends has no name any more: what it had before counts."""
    return {place for place, programs in seen.items() if not programs & LAUNCHERS}


def outside(places: set[str]) -> set[str]:
    """Those that other hosts can reach."""
    return {place for place in places if not is_loopback(place)}


def is_loopback(place: str) -> bool:
    address = place.rpartition(":")[0].strip("[]").partition("%")[0]
    return address != "*" and ip_address(address).is_loopback
