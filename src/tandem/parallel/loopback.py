"""Listeners on the loopback network that only this user's processes can reach.

Any user of a host can connect to its loopback addresses, and gloo takes whoever connects first, and names the number
that it waits for, as a rank. So connections are looked at once all are made, by the owner that the system knows for
the other end; where one is a stranger's, the ranks meet again behind a packet filter that lets in only what their own
user has asked for.
"""

import ctypes
import os
import random
import socket
import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Self

from tandem.owner import owner_of

__all__ = [
    "LoopbackListener",
    "find_listener",
    "is_own_connection",
    "listening_ports",
    "random_address",
    "rank_address",
]

_CONNECTED, _CONNECTING, _LISTENING = "01", "02", "0A"
_SO_ATTACH_FILTER = 26
_LOOK_S = 0.02
_MOST_SOURCES = 800
"""A filter has at most 4,096 instructions, and each source takes five."""


def rank_address(network: int, rank: int) -> str:
    """The loopback address of a rank in a start that has this network, from 1 to 254."""
    high, low = divmod(rank + 1, 256)
    return f"127.{network}.{high}.{low}"


def random_address() -> str:
    """A loopback address that most likely nobody uses."""
    return f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"  # noqa: S311


@dataclass(frozen=True, slots=True, kw_only=True)
class _Socket:
    """A line of the system's table of TCP sockets."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: str
    uid: int


def _sockets() -> Iterator[_Socket]:
    """All TCP sockets over IPv4 in this network namespace; none where the system has no such table."""
    try:
        lines = Path("/proc/self/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        _, local, remote, state, _, _, _, uid, *_ = line.split()
        yield _Socket(local=_endpoint(local), remote=_endpoint(remote), state=state, uid=int(uid))


def _endpoint(text: str) -> tuple[str, int]:
    address, port = text.split(":")
    return socket.inet_ntoa(struct.pack("=I", int(address, 16))), int(port, 16)


def is_own_connection(local: tuple[str, int], remote: tuple[str, int]) -> bool:
    """Whether the other end of a loopback connection belongs to this user; one that is being closed has no owner."""
    try:
        return owner_of(remote, local) == os.geteuid()
    except OSError:
        return any(
            entry.uid == os.geteuid()
            for entry in _sockets()
            if entry.local == remote and entry.remote == local and entry.state == _CONNECTED
        )


def find_listener(address: str, *, besides: Collection[int] = ()) -> "LoopbackListener | None":
    """The listener of this process at an address, besides those at some ports; None where that cannot be told."""
    for descriptor, place in _own_listeners(address):
        if place[1] not in besides:
            return LoopbackListener(place, socket.socket(fileno=os.dup(descriptor)))
    return None


def listening_ports(address: str) -> set[int]:
    """The ports at an address where this process listens."""
    return {place[1] for _, place in _own_listeners(address)}


def _own_listeners(address: str) -> Iterator[tuple[int, tuple[str, int]]]:
    """Descriptors of listeners at an address, and where they listen.

    The descriptors are asked rather than the system's table, which takes a hundred times as long to read: strangers
    come in until a listener has its filter.
    """
    try:
        names = os.listdir("/proc/self/fd")  # noqa: PTH208 - a path for each would take longer than the rest
    except OSError:
        return
    for descriptor in map(int, names):
        place = _listens_at(descriptor, address)
        if place is not None:
            yield descriptor, place


def _listens_at(descriptor: int, address: str) -> tuple[str, int] | None:
    """Where a descriptor listens, if it is a listener at this address."""
    try:
        held = socket.socket(fileno=descriptor)
    except OSError:
        return None
    try:
        if held.family != socket.AF_INET or not held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return None
        place: tuple[str, int] = held.getsockname()
        return place if place[0] == address else None
    except OSError:
        return None
    finally:
        # It is not ours to close.
        held.detach()


class LoopbackListener:
    """A listener that some library opened in this process."""

    def __init__(self, address: tuple[str, int], listener: socket.socket) -> None:
        self._address, self._socket = address, listener
        self._closing = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it; the library's own listener stays until the library closes it."""
        self._stop_admitting()
        self._socket.close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._address[1]

    def has_strangers(self) -> bool:
        """Whether a connection to it has another user at its other end."""
        table = [entry for entry in _sockets() if entry.state == _CONNECTED]
        owners = {(entry.local, entry.remote): entry.uid for entry in table}
        return any(
            owners.get((entry.remote, entry.local)) != os.geteuid()
            for entry in table
            if entry.local == self._address
        )

    def has_visitors(self) -> bool:
        """Whether anybody has connected to it, is about to, or has left and was not noticed yet."""
        return any(entry.local == self._address and entry.state != _LISTENING for entry in _sockets())

    def refuse_newcomers(self) -> None:
        """Let nobody connect any more; connections that exist go on."""
        self._stop_admitting()
        self._admit([])

    def admit_only_own(self) -> None:
        """From now on let in only what this user's processes try to connect.

        The first packet of a connection is dropped; by the time the system repeats it, a second later, its owner is
        known.
        """
        self._admit([])
        self._thread = Thread(target=self._keep_admitting, daemon=True)
        self._thread.start()

    def _keep_admitting(self) -> None:
        admitted: list[tuple[str, int]] = []
        while not self._closing.wait(_LOOK_S):
            sources = [
                entry.local
                for entry in _sockets()
                if entry.remote == self._address and entry.state == _CONNECTING and entry.uid == os.geteuid()
            ]
            if new := [source for source in sources if source not in admitted]:
                admitted = [*admitted, *new][-_MOST_SOURCES:]
                self._admit(admitted)

    def _stop_admitting(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _admit(self, sources: Sequence[tuple[str, int]]) -> None:
        """Drop every packet to the listener but those from these sources."""
        program = b"".join(struct.pack("=HBBI", *step) for step in _filter(sources))
        buffer = ctypes.create_string_buffer(program)
        header = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
        # Where the system has no filters, there is still the look at who has connected.
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)


_LOAD_HALF, _LOAD_WORD, _EQUAL, _RETURN = 0x28, 0x20, 0x15, 0x06
_NETWORK_HEADER = 0xFFF00000
_SOURCE_ADDRESS = 12
_ALL = 0xFFFFFFFF


def _filter(sources: Sequence[tuple[str, int]]) -> Iterator[tuple[int, int, int, int]]:
    """A classic BPF program over TCP packets: the instructions' code, jumps if true and if false, and operand."""
    for address, port in sources:
        (number,) = struct.unpack("!I", socket.inet_aton(address))
        yield _LOAD_HALF, 0, 0, 0
        yield _EQUAL, 0, 3, port
        yield _LOAD_WORD, 0, 0, _NETWORK_HEADER + _SOURCE_ADDRESS
        yield _EQUAL, 0, 1, number
        yield _RETURN, 0, 0, _ALL
    yield _RETURN, 0, 0, 0
