"""How the ranks of a run find each other and join into one process group.

What listens, and who can reach it:

- Ranks of one host, or of hosts that a mesh joins, listen on the loopback network and take connections of their own
  user alone. The store is a file, or reached over a Unix socket.
- Ranks on a network that somebody vouched for, and those of foreign launchers, listen at the address of one interface.
"""

import os
import socket
from contextlib import closing
from datetime import timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, PrefixStore, Store, TCPStore

from tandem.errors import TandemError
from tandem.parallel.key_values import MESH, STORE, LineConnection
from tandem.parallel.loopback import LoopbackListener, find_listener, listening_ports, random_address
from tandem.parallel.route import address_of, interface_towards
from tandem.parallel.store import RankStore

__all__ = ["join"]

_BACKEND = "guarded"
_TRIES = 5
_LISTENERS = 1000
"""How often a listener is given up because strangers came to it before its filter was there: a millisecond or two,
in which gloo looks at the host's devices, is enough for one who asks for nothing but listeners all the time."""
_PATIENCE = (timedelta(seconds=20), *[timedelta(seconds=60)] * (_TRIES - 2))
"""How long the ranks, all of which have come, may take to connect in each attempt but the last, if not less."""


def join(*, rank: int, size: int, device: torch.device, timeout_s: float) -> None:
    """Join the process group of all ranks, as the environment says.

    NCCL joins GPUs; through a mesh, which NCCL cannot use, gloo does. Between hosts encoded gradients lie in host
    memory, which gloo carries beside NCCL.
    """
    is_one_host = os.environ.get("LOCAL_WORLD_SIZE") == str(size)
    timeout = timedelta(seconds=timeout_s)
    mesh = os.environ.get(MESH, "")
    gpu = device.type == "cuda"
    is_guarded = bool(mesh) or (is_one_host and not gpu)
    _choose_interface(is_one_host=is_one_host)
    if is_guarded:
        _register(_GuardedGloo(Path(mesh) if mesh else None, timeout))
    nccl = gpu and not is_guarded
    dist.init_process_group(
        _BACKEND if is_guarded else _open_backend(nccl=nccl, is_one_host=is_one_host),
        store=_open_store(rank, size, timeout_s=timeout_s, is_one_host=is_one_host),
        rank=rank,
        world_size=size,
        timeout=timeout,
        device_id=device if nccl else None,
    )


def _open_backend(*, nccl: bool, is_one_host: bool) -> str:
    """On a network that somebody vouched for, or inside one host of GPUs."""
    if not nccl:
        return "gloo"
    return "nccl" if is_one_host else "cpu:gloo,cuda:nccl"


# --- the store ---


def _open_store(rank: int, size: int, *, timeout_s: float, is_one_host: bool) -> Store:
    if mesh := os.environ.get(MESH):
        return RankStore(Path(mesh), timeout_s=timeout_s)
    if file := os.environ.get(STORE):
        return FileStore(file, size)
    address, port = os.environ["MASTER_ADDR"], _port()
    # Torchrun keeps the store itself, in a process that is no rank.
    is_keeper = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    listener = _listen(address, port, is_one_host=is_one_host) if is_keeper else None
    return TCPStore(
        address if listener is None else listener.getsockname()[0],
        port,
        size,
        is_keeper,
        timeout=timedelta(seconds=timeout_s),
        wait_for_workers=False,
        master_listen_fd=None if listener is None else listener.detach(),
    )


def _port() -> int:
    text = os.environ.get("MASTER_PORT", "")
    if not text.isdecimal():
        raise TandemError(f"MASTER_PORT is {text!r} in the environment: make it a number.")
    return int(text)


def _listen(address: str, port: int, *, is_one_host: bool) -> socket.socket:
    """Listen at one address of this host: torch's own store would do so at all of them."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    family, _, _, _, place = found[0]
    if ip_address(str(place[0]).partition("%")[0]).is_loopback and not is_one_host:
        # A host often takes its own name for itself, which is of no use to the others.
        interface = interface_towards(address)
        outward = None if interface is None else address_of(interface)
        if outward is not None:
            family = socket.AF_INET6 if ":" in outward else socket.AF_INET
            place = (outward, port)
    try:
        return socket.create_server(place[:2], family=family, backlog=1024)
    except OSError as error:
        raise TandemError(
            f"Rank 0 cannot listen at {place[0]}, port {port}: {error.strerror}; give another MASTER_PORT, or a "
            "MASTER_ADDR that this host has."
        ) from error


def _choose_interface(*, is_one_host: bool) -> None:
    """Name the network interface to use, unless the environment does; otherwise the libraries guess.

    They take the address that the host's name stands for, which may be a slow or a dead one. On one host nothing has
    to leave it, whatever the environment says.
    """
    if is_one_host:
        os.environ.update({"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "=lo"})
        return
    if {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} <= os.environ.keys():
        return
    name = interface_towards(os.environ.get("MASTER_ADDR", ""))
    if name is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
        # Without the sign NCCL takes every interface whose name begins so.
        os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={name}")


# --- gloo on the loopback network ---


class _GuardedGloo:
    """Makes a gloo process group that no other user of the host has got into."""

    def __init__(self, mesh: Path | None, timeout: timedelta) -> None:
        self._mesh, self._timeout = mesh, timeout

    def __call__(self, store: Store, rank: int, size: int, _: timedelta) -> dist.ProcessGroup:
        for attempt in range(_TRIES):
            group = self._maybe_meet(PrefixStore(f"try {attempt}", store), rank, size, attempt=attempt)
            if group is not None:
                return group
        raise TandemError(
            f"Another user of this host got between the ranks {_TRIES} times: see who runs what here, then resume."
        )

    def _maybe_meet(self, store: Store, rank: int, size: int, *, attempt: int) -> dist.ProcessGroup | None:
        """A process group; None on all ranks where a stranger has come to one of them.

        The filter costs a second, so the first attempt goes without it.
        """
        device, listener = self._listen(rank, is_filtered=attempt > 0)
        with listener:
            if self._mesh is not None:
                self._ask({"do": "announce", "rank": rank, "port": listener.port})
            store.set(f"here {rank}", "")
            for other in range(size):
                store.get(f"here {other}")
            group = self._connect(device, store, rank, size, attempt=attempt)
            is_clean = group is not None and not listener.has_strangers()
            store.set(f"clean {rank}", "yes" if is_clean else "no")
            # Until all have said so, the listener is there for those who still connect.
            if any(store.get(f"clean {other}") != b"yes" for other in range(size)):
                return None
            listener.refuse_newcomers()
        return group

    def _listen(self, rank: int, *, is_filtered: bool) -> tuple[object, LoopbackListener]:
        """A device of gloo's, and its listener.

        Gloo listens at once, so that strangers may come before the filter does. Such a listener is given up for
        another one: whoever is let in could name the number of a rank, and leave again in the midst of the meeting.
        Gloo closes it when the device is forgotten.
        """
        for _ in range(_LISTENERS):
            address = self._address(rank)
            # A group that could not be used may still listen.
            others = listening_ports(address)
            device = dist.ProcessGroupGloo.create_device(hostname=address, lazy_init=False)
            listener = find_listener(address, besides=others)
            if listener is None:
                raise TandemError(
                    "This system does not tell what a process listens to (/proc/self/fd): mount /proc."
                )
            if not is_filtered:
                return device, listener
            listener.admit_only_own()
            # No rank knows the port yet.
            if not listener.has_visitors():
                return device, listener
            listener.close()
        raise TandemError(
            f"Another user of this host connects to whatever Tandem opens, {_LISTENERS} times in a row: "
            "see who runs what here, then resume."
        )

    def _address(self, rank: int) -> str:
        return (
            random_address() if self._mesh is None else self._ask({"do": "address", "rank": rank})["address"]
        )

    def _connect(
        self, device: object, store: Store, rank: int, size: int, *, attempt: int
    ) -> dist.ProcessGroup | None:
        """A process group; None where an attempt fails that is not the last, as if a stranger comes and goes."""
        gloo: Any = (
            dist.ProcessGroupGloo
        )  # whose options have no types, and are the only way to name a device
        options = gloo._Options()  # noqa: SLF001
        options._devices = [device]  # noqa: SLF001
        options._timeout = min([self._timeout, *_PATIENCE[attempt : attempt + 1]])  # noqa: SLF001
        try:
            group = gloo(store, rank, size, options)
        except RuntimeError:
            if attempt == _TRIES - 1:
                raise
            return None
        group._set_default_timeout(self._timeout)  # noqa: SLF001
        made: dist.ProcessGroup = group
        return made

    def _ask(self, request: dict[str, object]) -> dict[str, str]:
        """Ask this host's end of the mesh, which refuses with a reason."""
        assert self._mesh is not None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(self._timeout.total_seconds())
            connection.connect(str(self._mesh))
            with closing(LineConnection(connection)) as lines:
                lines.send(request)
                answer = lines.receive()
        if answer is None or "error" in answer:
            raise ConnectionError("" if answer is None else answer["error"])
        return answer


_current: list[_GuardedGloo] = []


def _register(make: _GuardedGloo) -> None:
    """Have torch make the process group by this function; it takes one for each name, and only once."""
    _current[:] = [make]
    _register_once()


@cache
def _register_once() -> None:
    def make(store: Store, rank: int, size: int, timeout: timedelta) -> dist.ProcessGroup:
        return _current[0](store, rank, size, timeout)

    dist.Backend.register_backend(_BACKEND, make, devices=["cpu", "cuda"])
