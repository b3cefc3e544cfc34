"""Where requests come from, as far as one client has it: an address, or the network that one host has for itself."""

from ipaddress import IPv6Address, ip_address, ip_network

__all__ = ["client_network"]

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
