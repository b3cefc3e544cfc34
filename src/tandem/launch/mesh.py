"""One host's end of the encrypted mesh over which the ranks of several hosts find each other and exchange gradients.

Ranks know loopback addresses alone. A connection to a rank of another host reaches this end of the mesh, which carries
it over TLS 1.3 to that host's end, and from there to the rank. Each host listens at one port beyond loopback, and who
has no key that was exchanged over ssh for this start learns nothing there but that TLS is spoken.

A connection is carried by two TLS connections, one for each direction: OpenSSL does not allow one thread to read from
a connection while another writes to it.
"""

import json
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import randbelow, token_hex
from threading import Event, Lock, Thread
from typing import Any

from tandem.errors import TandemError
from tandem.launch.identity import Identity, fingerprint_of
from tandem.launch.local_socket import is_own_peer
from tandem.launch.places import Places
from tandem.launch.streams import HEADER_BYTES, end, pump, read_header, tune
from tandem.parallel.key_values import KeyValues, LineConnection
from tandem.parallel.loopback import is_own_connection, rank_address

__all__ = ["Mesh", "Peer", "describe_mesh"]

MEET_S = 60.0
"""How long other hosts are tried until they can be reached."""
HANDSHAKE_S = 10.0
"""How long whoever connects may take to show a key."""
_RETRY_S = 0.2
_MOST_HANDSHAKES, _MOST_STRANGERS = 1024, 64
"""At once, from the addresses of this start's hosts and from all others; who comes in vain may try again."""
_MOST_WAITING = 4096
"""Connections of one direction that wait for their twin."""
_STORE = -1
"""In place of a rank: the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A host of the start, as all know it; they are in the same order everywhere."""

    name: str
    address: str
    port: int
    certificate: str
    first_rank: int
    ranks: int

    def has(self, rank: int) -> bool:
        """Whether this rank is on that host."""
        return self.first_rank <= rank < self.first_rank + self.ranks


def describe_mesh(peers: Sequence[Peer]) -> dict[str, Any]:
    """What every host of a start has to know of the mesh, as a message; each is also told its own place."""
    return {"peers": [asdict(peer) for peer in peers], "network": randbelow(254) + 1}


class Mesh:
    """Listens from the beginning, and lets others in from `join` on."""

    def __init__(self, *, name: str, address: str, port: int = 0, socket_path: Path | None = None) -> None:
        """Listen at an address of this host; its ranks find it at the path, or in a folder of its own."""
        self._identity = Identity(name)
        self.certificate = self._identity.certificate
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            self._door = socket.create_server((address, port), family=family, backlog=1024)
        except OSError as error:
            where = f"{address}, port {port}" if port else address
            raise TandemError(
                f"Cannot listen at {where}: {error.strerror}; give another --port or --nic."
            ) from error
        self.port: int = self._door.getsockname()[1]
        # Nobody but this user can enter it.
        self._folder = tempfile.TemporaryDirectory(prefix="tandem-mesh-")
        self.socket_path = socket_path or Path(self._folder.name) / "socket"
        """Where this host's ranks speak to the mesh."""
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._control.bind(str(self.socket_path))
        self._control.listen(1024)
        self._open: set[socket.socket] = {self._door, self._control}
        self._lock = Lock()
        self._closed = Event()
        self._handshakes = {True: Places(_MOST_HANDSHAKES), False: Places(_MOST_STRANGERS)}
        self._waiting: dict[tuple[int, str], tuple[ssl.SSLSocket, float]] = {}
        self._ports: dict[int, int] = {}
        self._values = KeyValues()
        self._peers: Sequence[Peer] = ()
        self._own = 0
        self._network = 0

    def join(self, meeting: Mapping[str, Any]) -> None:
        """Let the peers in, and this host's ranks out, as the message says, with this host's own place in it."""
        peers, own, network = [Peer(**peer) for peer in meeting["peers"]], meeting["own"], meeting["network"]
        self._peers, self._own, self._network = peers, own, network
        self._by_fingerprint = {fingerprint_of(peer.certificate): place for place, peer in enumerate(peers)}
        self._addresses = {peer.address for peer in peers}
        certificates = [peer.certificate for peer in peers]
        self._server_side = self._identity.context(ssl.PROTOCOL_TLS_SERVER, certificates)
        self._client_side = self._identity.context(ssl.PROTOCOL_TLS_CLIENT, certificates)
        self._in_thread(self._accept, self._door, self._receive)
        self._in_thread(self._accept, self._control, self._answer_rank)

    def close(self) -> None:
        """End all connections; may be called again."""
        with self._lock:
            self._closed.set()
            sockets = list(self._open)
        for connection in sockets:
            end(connection)
        self._door.close()
        self._control.close()
        self._folder.cleanup()

    # --- connections of all kinds ---

    def _in_thread(self, do: Callable[..., object], *arguments: object) -> None:
        Thread(target=do, args=arguments, daemon=True, name="tandem-mesh").start()

    def _keep(self, connection: socket.socket) -> None:
        """Remember a connection, to end it with the mesh."""
        with self._lock:
            self._open.add(connection)
            is_late = self._closed.is_set()
        if is_late:
            end(connection)

    def _drop(self, *connections: socket.socket) -> None:
        for connection in connections:
            with self._lock:
                self._open.discard(connection)
            end(connection)
            with suppress(OSError):
                connection.close()

    def _accept(
        self,
        server: socket.socket,
        take: Callable[[socket.socket], None],
        admits: Callable[[socket.socket], bool] = lambda _: True,
    ) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                if not self._closed.is_set():
                    time.sleep(_RETRY_S)  # too many open files: some will be closed
                continue
            if admits(connection):
                self._in_thread(self._take_safely, take, connection)
            else:
                connection.close()
        self._drop(server)

    def _take_safely(self, take: Callable[[socket.socket], None], connection: socket.socket) -> None:
        self._keep(connection)
        try:
            take(connection)
        except (OSError, ValueError, KeyError, TypeError, TandemError):
            self._drop(connection)

    # --- from this host's ranks outward ---

    def _answer_rank(self, connection: socket.socket) -> None:
        """Do what a rank asks for over the Unix socket."""
        if not is_own_peer(connection):
            raise PermissionError("another user's")
        lines = LineConnection(connection)
        request = lines.receive() or {}
        match request["do"]:
            case "store" if self._own == 0:
                lines.send({})
                self._values.serve(lines)
            case "store":
                self._carry_store(connection, lines)
                return
            case "address":
                lines.send({"address": rank_address(self._network, int(request["rank"]))})
            case "announce":
                lines.send(self._announce(int(request["rank"]), int(request["port"])))
            case other:
                raise ValueError(other)
        self._drop(connection)

    def _carry_store(self, connection: socket.socket, lines: LineConnection) -> None:
        try:
            out, back = self._open_stream(0, _STORE)
        except OSError as error:
            lines.send({"error": str(error)})
            raise
        lines.send({})
        self._splice(connection, out=out, back=back)

    def _announce(self, rank: int, port: int) -> Mapping[str, Any]:
        """Let all other hosts forward to a rank of this one; answers when they do."""
        self._ports[rank] = port
        failures: list[str] = []

        def tell(place: int) -> None:
            try:
                with self._connect(place, {"do": "announce", "rank": rank, "port": port}) as connection:
                    answer = json.loads(read_header(connection))
                if "error" in answer:
                    failures.append(f"{self._peers[place].name}: {answer['error']}")
            except (OSError, ValueError) as error:
                failures.append(f"{self._peers[place].name}: {error}")

        threads = [
            Thread(target=tell, args=(place,), daemon=True)
            for place in range(len(self._peers))
            if place != self._own
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"error": failures[0]} if failures else {}

    def _forward(self, connection: socket.socket) -> None:
        """Carry a connection that a rank of this host made to the address of one elsewhere."""
        address = connection.getsockname()[0]
        rank = next(rank for rank in tuple(self._ports) if self._address_of(rank)[0] == address)
        place = next(place for place, peer in enumerate(self._peers) if peer.has(rank))
        out, back = self._open_stream(place, rank)
        self._splice(connection, out=out, back=back)

    def _address_of(self, rank: int) -> tuple[str, int]:
        return rank_address(self._network, rank), self._ports[rank]

    def _open_stream(self, place: int, rank: int) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
        """The way to a rank of another host, or to the store there, and the way back."""
        stream = token_hex(16)
        out = self._connect(place, {"do": "there", "stream": stream, "rank": rank})
        self._keep(out)
        try:
            back = self._connect(place, {"do": "back", "stream": stream, "rank": rank})
        except BaseException:
            self._drop(out)
            raise
        self._keep(back)
        return out, back

    def _connect(self, place: int, header: Mapping[str, Any]) -> ssl.SSLSocket:
        """A connection to another host's end of the mesh, tried until there is one; its first line is sent."""
        peer = self._peers[place]
        source = self._door.getsockname()[0]
        end_s = time.monotonic() + MEET_S
        while True:
            try:
                plain = socket.create_connection(
                    (peer.address, peer.port), HANDSHAKE_S, source_address=(source, 0)
                )
                tune(plain)
                secure = self._client_side.wrap_socket(plain)
                if fingerprint_of(secure.getpeercert(binary_form=True)) != fingerprint_of(peer.certificate):
                    secure.close()
                    raise ConnectionRefusedError(f"another host answers in place of {peer.name}")
                secure.settimeout(None)
                secure.sendall(json.dumps(header).encode().ljust(HEADER_BYTES))
            except OSError as error:
                if self._closed.is_set() or time.monotonic() > end_s:
                    raise ConnectionError(
                        f"no connection to {peer.name} at {peer.address}, port {peer.port}: {error}"
                    ) from error
                time.sleep(_RETRY_S)
            else:
                return secure

    # --- from other hosts inward ---

    def _receive(self, plain: socket.socket) -> None:
        """Take a connection from the network: whoever it is must show a key of this start, and say what for."""
        handshakes = self._handshakes[plain.getpeername()[0] in self._addresses]
        plain.settimeout(HANDSHAKE_S)
        tune(plain)
        secure = self._server_side.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self._keep(secure)
        with self._lock:
            self._open.discard(plain)
        try:
            with handshakes.taken(secure):
                secure.do_handshake()
                place = self._by_fingerprint[fingerprint_of(secure.getpeercert(binary_form=True))]
                header = json.loads(read_header(secure))
            secure.settimeout(None)
            self._serve_host(secure, place, header)
        except (OSError, ValueError, KeyError, TypeError):
            self._drop(secure)

    def _serve_host(self, secure: ssl.SSLSocket, place: int, header: Mapping[str, Any]) -> None:
        rank = int(header["rank"])
        match header["do"]:
            case "announce":
                secure.sendall(
                    json.dumps(self._open_way(place, rank, int(header["port"]))).encode().ljust(HEADER_BYTES)
                )
                self._drop(secure)
            case "there" | "back":
                twin = self._maybe_twin((place, str(header["stream"])), secure)
                if twin is not None:
                    there, back = (secure, twin) if header["do"] == "there" else (twin, secure)
                    self._carry_inward(rank, there, back)
            case other:
                raise ValueError(other)

    def _maybe_twin(self, key: tuple[int, str], secure: ssl.SSLSocket) -> ssl.SSLSocket | None:
        """The connection of the other direction; None where it has not come yet, and this one waits for it."""
        now_s = time.monotonic()
        with self._lock:
            if key in self._waiting:
                return self._waiting.pop(key)[0]
            old = [other for other, (_, since_s) in self._waiting.items() if now_s - since_s > MEET_S]
            late = [self._waiting.pop(other)[0] for other in old]
            is_full = len(self._waiting) >= _MOST_WAITING
            if not is_full:
                self._waiting[key] = secure, now_s
        for connection in late:
            self._drop(connection)
        if is_full:
            raise ConnectionRefusedError("too many that wait")
        return None

    def _carry_inward(self, rank: int, there: ssl.SSLSocket, back: ssl.SSLSocket) -> None:
        try:
            local = self._connect_to(rank)
        except OSError:
            self._drop(there, back)
            return
        self._splice(local, out=back, back=there)

    def _open_way(self, place: int, rank: int, port: int) -> Mapping[str, str]:
        """Listen where this host's ranks will look for a rank of another host."""
        if not self._peers[place].has(rank):
            return {"error": f"rank {rank} is on another host"}
        if self._ports.get(rank) == port:
            return {}
        self._ports[rank] = port
        try:
            server = socket.create_server((rank_address(self._network, rank), port), backlog=1024)
        except OSError as error:
            return {"error": f"{error.strerror} at {rank_address(self._network, rank)}, port {port}"}
        self._keep(server)
        # Strangers are sent away at once, so that many of them keep no rank waiting.
        self._in_thread(self._accept, server, self._forward, _is_own)
        return {}

    def _connect_to(self, rank: int) -> socket.socket:
        """Connect to a rank of this host, or to the store here."""
        if rank == _STORE:
            if self._own != 0:
                raise ConnectionRefusedError("the store is elsewhere")
            ours, theirs = socket.socketpair()
            self._in_thread(self._serve_store, theirs)
            self._keep(ours)
            return ours
        if not self._peers[self._own].has(rank):
            raise ConnectionRefusedError("the rank is elsewhere")
        local = socket.create_connection(self._address_of(rank), HANDSHAKE_S)
        local.settimeout(None)
        self._keep(local)
        return local

    def _serve_store(self, connection: socket.socket) -> None:
        self._keep(connection)
        self._values.serve(LineConnection(connection))
        self._drop(connection)

    # --- bytes ---

    def _splice(self, local: socket.socket, *, out: ssl.SSLSocket, back: ssl.SSLSocket) -> None:
        """Carry both directions until one of them ends: a rank that is gone is to be missed at once."""
        with suppress(OSError):
            local.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        inward = Thread(target=pump, args=(back, local, local), daemon=True, name="tandem-mesh")
        inward.start()
        pump(local, out, back)
        inward.join()
        self._drop(local, out, back)


def _is_own(connection: socket.socket) -> bool:
    """Whether this user's process made a connection over loopback."""
    try:
        return is_own_connection(connection.getsockname()[:2], connection.getpeername()[:2])
    except OSError:
        return False
