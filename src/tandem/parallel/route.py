"""Which of this host's addresses and network interfaces leads to another host."""

import ctypes
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from tandem.errors import TandemError

__all__ = ["address_of", "interface_of", "interface_towards", "is_wireguard", "source_of"]

_FAR = ("192.0.2.1", "2001:db8::1")
"""Addresses that nobody has: the way to them is the way to the world."""
_ANY_PORT = 9


def source_of(address: str) -> str:
    """The own address of this host on the way to a name or address; nothing is sent. TandemError if there is none."""
    try:
        found = socket.getaddrinfo(address, _ANY_PORT, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise TandemError(
            f"This host cannot find {address}: {error.strerror}; give an address, or a name it knows."
        ) from error
    reasons = []
    for family, kind, protocol, _, place in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(place)
                source: str = probe.getsockname()[0]
                return source
        except OSError as error:
            reasons.append(error.strerror or str(error))
    raise TandemError(f"This host has no way to {address}: {reasons[0]}; look at its network.")


def interface_of(ip: str) -> str | None:
    """The network interface that has this address of this host; None where none has."""
    wanted = ip_address(ip.partition("%")[0])
    return next((name for name, held in _addresses() if ip_address(held) == wanted), None)


def address_of(interface: str) -> str | None:
    """An address of this network interface, of the older kind if it has one; None where it has none."""
    held = [ip_address(address) for name, address in _addresses() if name == interface]
    usable = [address for address in held if not address.is_link_local]
    return str(min(usable, key=lambda address: address.version)) if usable else None


def is_wireguard(interface: str) -> bool:
    """Whether WireGuard encrypts all that passes this interface, between hosts that know each other's keys."""
    with suppress(OSError):
        return "DEVTYPE=wireguard" in Path(f"/sys/class/net/{interface}/uevent").read_text().splitlines()
    return False


def interface_towards(address: str) -> str | None:
    """The interface on the way to a host which others reach by this name or address; None where it cannot be told."""
    try:
        source = source_of(address)
        if _is_loopback(source) and not _is_loopback(address):
            # A host often takes its own name for itself, which is of no use to the others.
            source = _source_outwards()
        return interface_of(source)
    except TandemError:
        return None


def _source_outwards() -> str:
    for address in _FAR:
        with suppress(TandemError):
            return source_of(address)
    raise TandemError("This host has no way to any other: look at its network.")


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class _Entry(ctypes.Structure):
    """One address of the system's list; what comes after these is not looked at."""


_Entry._fields_ = [
    ("next", ctypes.POINTER(_Entry)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
]

_LENGTHS = {socket.AF_INET: (4, 4), socket.AF_INET6: (8, 16)}
"""Where in a socket address of a family the address itself begins, and its bytes."""


def _addresses() -> Iterator[tuple[str, str]]:
    """Interface and address, for each address of this host; none where the list has another form than Linux's."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    first: Any = ctypes.POINTER(_Entry)()
    if library.getifaddrs(ctypes.byref(first)):
        return
    try:
        entry = first
        while entry:
            held = entry.contents
            if address := _read(held.address):
                yield held.name.decode(), address
            entry = held.next
    finally:
        library.freeifaddrs(first)


def _read(place: int | None) -> str:
    """The address at this place in memory; empty for families that are not IP."""
    if not place:
        return ""
    (family,) = struct.unpack("=H", ctypes.string_at(place, 2))
    if family not in _LENGTHS:
        return ""
    start, size = _LENGTHS[family]
    return socket.inet_ntop(family, ctypes.string_at(place + start, size))
