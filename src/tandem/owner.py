"""Whose a connection on this host is: the system is asked for one socket, not for the table of all."""

import errno
import os
import socket
import struct
from ipaddress import IPv6Address, ip_address

__all__ = ["owner_of"]

_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST, _ERROR = 1, 2
_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBxI")
_FOUND = struct.Struct("=BBBB")
_CONNECTED = 1
_ENDPOINTS_BYTES, _NUMBERS = 48, struct.Struct("=IIIII")
_ANY_COOKIE = b"\xff" * 8
_ANSWER_BYTES = 8192


def owner_of(end: tuple[str, int], other: tuple[str, int]) -> int | None:
    """The user whose socket is at `end` of the TCP connection between two addresses; None where there is none here.

    One that its owner has closed belongs to nobody. Raises OSError where the system does not tell.
    """
    first, second = (ip_address(host.partition("%")[0]) for host, _ in (end, other))
    if isinstance(first, IPv6Address) and first.ipv4_mapped and isinstance(second, IPv6Address):
        first, second = first.ipv4_mapped, second.ipv4_mapped or second
    if first.version != second.version:
        return None
    family = socket.AF_INET if first.version == 4 else socket.AF_INET6
    ports = struct.pack("!HH", end[1], other[1])
    addresses = first.packed.ljust(16, b"\0") + second.packed.ljust(16, b"\0")
    endpoints = ports + addresses + bytes(4) + _ANY_COOKIE
    answer = _ask(_ASKED.pack(family, socket.IPPROTO_TCP, 0, 1 << _CONNECTED) + endpoints)
    if answer is None:
        return None
    _, state, _, _ = _FOUND.unpack_from(answer)
    *_, user, _ = _NUMBERS.unpack_from(answer, _FOUND.size + _ENDPOINTS_BYTES)
    # Without such a connection, whoever listens at that end is told instead.
    is_it = state == _CONNECTED and answer[_FOUND.size :].startswith(ports)
    return int(user) if is_it else None


def _ask(request: bytes) -> bytes | None:
    """What the system says of one socket; None where there is none."""
    header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as system:
        system.send(header + request)
        answer = system.recv(_ANSWER_BYTES)
    _, kind, _, _, _ = _HEADER.unpack_from(answer)
    body = answer[_HEADER.size :]
    if kind != _ERROR:
        return body
    (number,) = struct.unpack_from("=i", body)
    if -number == errno.ENOENT:
        return None
    raise OSError(-number, os.strerror(-number))
