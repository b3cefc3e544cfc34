"""Where requests come from, as far as one client has it: an address, or the network that one host has for itself."""

from ipaddress import IPv6Address, ip_address, ip_network

from starlette.types import Scope

from tandem.owner import owner_of

__all__ = ["client_network", "client_of"]

ONE_HOST = 64
"""Bits of an IPv6 address that name a network: within it a host has as many addresses as it likes."""


def client_network(host: str) -> str:
    """What all addresses of a client have in common."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), ONE_HOST), strict=False))


def client_of(scope: Scope) -> str:
    """Who asks: a user of this host, each for himself, or an address elsewhere.

    A proxy on this host tells of an address without a port.
    """
    client, server = scope.get("client"), scope.get("server")
    if not client:
        return ""
    user = None
    if server and server[1] and client[1]:
        try:
            user = owner_of((client[0], client[1]), (server[0], server[1]))
        except (OSError, ValueError):
            user = None
    return str(client[0]) if user is None else f"user {user} of this host"
