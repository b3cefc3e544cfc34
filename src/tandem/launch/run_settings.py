"""Settings of a run over several hosts, sent to every host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Network", "RunSettings"]

Network: TypeAlias = Literal["one host", "mesh", "wireguard", "trusted"]
"""What carries the ranks' exchange: nothing leaves the host, Tandem's mesh, an interface of WireGuard's, or plain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What every host has to know of a run before its first start."""

    folder: str
    """Where they work; what is relative below is relative to it."""
    run: str
    recipe: str
    token: str
    """Name of a file in the run's folder here: who sees it shares that folder with us."""
    device: str
    options: Sequence[str]
    """Of every rank's command line."""
    environment: Mapping[str, str]
    nic: str = ""
    """The interface to use; empty: the one that reaches the other hosts."""
    port: int = 0
    """Where each host listens for the others; 0: any free one."""
    is_network_trusted: bool = False
    """Whether the ranks may listen on the network themselves, unguarded and unencrypted."""
    min_hosts: int = 1
    silence_s: float = 20.0
    """How long a host may be silent before it counts as lost."""
