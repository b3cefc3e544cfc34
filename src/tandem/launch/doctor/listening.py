"""What listens on this host beyond its loopback addresses, and whose it is."""

import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from itertools import chain
from pathlib import Path

__all__ = ["describe_listeners"]

_LISTENING = "0A"
_MOST = 1000


def describe_listeners() -> Mapping[str, str]:
    """By address and port, as in 0.0.0.0:22, the program that listens there; empty where the system does not tell."""
    places = dict(_places())
    programs = _programs(set(places.values()))
    return {place: programs.get(inode, "") for place, inode in list(places.items())[:_MOST]}


def _places() -> Iterator[tuple[str, str]]:
    """Address and port, and the socket's inode, of each TCP listener that others than this host can reach."""
    for line in chain(_lines("tcp"), _lines("tcp6")):
        fields = line.split()
        number, port = fields[1].split(":")
        address = _address(number)
        if fields[3] == _LISTENING and not ip_address(address).is_loopback:
            shown = f"[{address}]" if ":" in address else address
            yield f"{shown}:{int(port, 16)}", fields[9]


def _lines(table: str) -> list[str]:
    try:
        return Path("/proc/self/net", table).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []


def _address(number: str) -> str:
    words = [int(number[at : at + 8], 16) for at in range(0, len(number), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed)
    mapped = IPv6Address(packed).ipv4_mapped
    return str(mapped or IPv6Address(packed))


def _programs(inodes: set[str]) -> dict[str, str]:
    """The name of the program that has each of these sockets, of those that this user may look into."""
    found: dict[str, str] = {}
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            target = str(descriptor.readlink())
            if target.startswith("socket:[") and target[8:-1] in inodes:
                found[target[8:-1]] = (descriptor.parents[1] / "comm").read_text().strip()
    return found
