"""A port to serve on: taken before anything is loaded, and named as a browser wants it."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

from tandem.errors import TandemError

__all__ = ["address_of", "is_loopback", "listen"]

ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of nobody, for documentation; nothing is sent to them."""
DISCARD = 9


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address; before models are loaded, since that takes longer than to see that it is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise TandemError(f"There is no address {host!r} here: take another --host.") from error
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise TandemError(
            f"Cannot listen on {host} port {port} ({error.strerror}): take another --port, or --port 0 for a free one."
        ) from error
    return bound


def is_loopback(bound: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return _ip(bound).is_loopback


def address_of(bound: socket.socket) -> str:
    """The address for a browser, with a slash at its end; of every address of this machine, one that others reach."""
    host, port = bound.getsockname()[:2]
    if _ip(bound).is_unspecified:
        host = _outward(bound.family) or socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _ip(bound: socket.socket) -> IPv4Address | IPv6Address:
    return ip_address(bound.getsockname()[0].partition("%")[0])


def _outward(family: int) -> str:
    """The address from which this machine speaks to others; empty where it speaks to none."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((ELSEWHERE[socket.AddressFamily(family)], DISCARD))
            return str(asking.getsockname()[0])
    except OSError:
        return ""
