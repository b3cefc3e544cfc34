"""All that a lab is made of, in a file that is written before the things are made."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.lab.link import Link

__all__ = ["Host", "Started", "State", "maybe_read_state", "read_state", "write_state"]

_VERSION = 1
_FILE = "lab.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A process that the lab started; a number alone may belong to another by now."""

    pid: int
    ticks: int
    """When it started, in clock ticks since the machine did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host: a network namespace, a place on the switch, a folder."""

    name: str
    namespace: str
    address: str
    link: Link
    sshd: Started | None = None
    wire: Started | None = None
    """The process that delays what the host sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A lab as it is, or is being made."""

    boot: str
    """Of the machine: after another one no process and no namespace of the lab is left."""
    switch: str
    """The namespace of the bridge."""
    gateway: str
    """The bridge's own address, from which this machine reaches the hosts."""
    prefix: int
    made_folder: bool
    hosts: Mapping[str, Host]

    @property
    def threads(self) -> int:
        """How many threads a program should use in a host: all hosts share this machine's processors."""
        return max(1, (os.cpu_count() or 1) // len(self.hosts))

    @property
    def namespaces(self) -> list[str]:
        """Every namespace of the lab."""
        return [self.switch, *(host.namespace for host in self.hosts.values())]

    def host(self, name: str) -> Host:
        """The host of that name; TandemError names those that there are."""
        if name not in self.hosts:
            raise TandemError(f"The lab has no host {name!r}: it has {', '.join(self.hosts)}.")
        return self.hosts[name]

    def having(self, host: Host) -> "State":
        """The same lab with this host in the place of the one of its name."""
        return replace(self, hosts={**self.hosts, host.name: host})


def write_state(folder: Path, state: State) -> None:
    """Keep the state; a crash leaves the old one or the new one."""
    held = {"version": _VERSION, **asdict(state)}
    write_atomic(folder / _FILE, json.dumps(held, indent=1).encode() + b"\n")


def read_state(folder: Path) -> State:
    """The state of the lab in a folder; TandemError where there is none."""
    state = maybe_read_state(folder)
    if state is None:
        raise TandemError(f"There is no lab in {folder}: make one with `tandem lab up`.")
    return state


def maybe_read_state(folder: Path) -> State | None:
    """The state of the lab in a folder, None where there is none."""
    try:
        held = json.loads((folder / _FILE).read_bytes())
        version = held.pop("version")
        if version == _VERSION:
            hosts = {name: _host(each) for name, each in held.pop("hosts").items()}
            return State(hosts=hosts, **held)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise TandemError(
            f"{folder / _FILE} is damaged: remove the namespaces that `ip netns list` shows as "
            "tandem-… by hand, then the folder."
        ) from None
    raise TandemError(f"{folder} has lab format {version}, not {_VERSION}: use the Tandem that made it.")


def _host(held: dict[str, Any]) -> Host:
    processes = (held.pop("sshd"), held.pop("wire"))
    sshd, wire = (Started(**each) if each else None for each in processes)
    return Host(link=Link(**held.pop("link")), sshd=sshd, wire=wire, **held)
