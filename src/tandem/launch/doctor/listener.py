"""The receiving side of a measurement between two hosts: answers, echoes, counts bytes and datagrams.

It speaks first: a word that it has never said before. Whoever measures proves with it that he knows the token, which
itself is never sent, so that those who listen on the network learn nothing that opens the port to them.
"""

import errno
import hmac
import json
import secrets
import select
import socket
import struct
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any

from tandem.launch.places import Places

__all__ = ["Listener", "prove", "read_line"]

_LONGEST_S = 10.0
"""How long a measurement may take, whatever is asked for."""
_TOKEN_S = 3.0
"""How long whoever connects may take to show that he knows the token."""
_LONGEST_LINE = 1000
_MOST_FROM_HOSTS, _MOST_STRANGERS = 256, 64
"""Connections that have shown nothing yet, from the addresses of those that measure and from all others."""
_MOST_ECHOES = 1000
_RETRY_S = 0.05
_LATE_S = 0.2
_COUNT_OVERFLOWS = 40
"""Linux's SO_RXQ_OVFL, which Python does not name: how many datagrams our own buffer had no room for."""


def prove(token: str, nonce: str, words: Mapping[str, Any]) -> str:
    """What only those who know the token can say to this word, and for this request."""
    said = json.dumps([nonce, dict(sorted(words.items()))])
    return hmac.new(token.encode(), said.encode(), "sha256").hexdigest()


class Listener:
    """Listens at one address of this host, and serves those who know the token."""

    def __init__(self, token: str, *, address: str, hosts: Collection[str] = ()) -> None:
        """`hosts` are the addresses of those that measure: nobody else can take their places."""
        self._token, self._address, self._hosts = token, address, frozenset(hosts)
        self._servers: list[socket.socket] = []
        self._places = {True: Places(_MOST_FROM_HOSTS), False: Places(_MOST_STRANGERS)}

    def open(self, port: int) -> int | None:
        """Listen on a port, or on a free one for 0; gives the port, or None where another program has it."""
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        try:
            server = socket.create_server((self._address, port), family=family, backlog=1024)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return None
            raise
        self._servers.append(server)
        Thread(target=self._accept, args=(server,), daemon=True).start()
        number: int = server.getsockname()[1]
        return number

    def close(self) -> None:
        """Listen no longer."""
        for server in self._servers:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for callers
            server.close()
        self._servers.clear()

    def _accept(self, server: socket.socket) -> None:
        while server.fileno() >= 0:
            try:
                connection, _ = server.accept()
            except OSError:
                time.sleep(_RETRY_S)  # closed by now, or too many open files, some of which will be
                continue
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        kinds: Mapping[str, Callable[[socket.socket, Mapping[str, Any]], None]]
        kinds = {"hello": _hello, "echo": _echo, "sink": _sink, "count": _count}
        # A stranger's connection, or one that breaks, is dropped: the other side says what it saw.
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError), connection:
            with self._places[connection.getpeername()[0] in self._hosts].taken(connection):
                words = self._proven(connection)
            connection.settimeout(_LONGEST_S)
            kinds[words["do"]](connection, words)

    def _proven(self, connection: socket.socket) -> Mapping[str, Any]:
        """The request of one who knows the token."""
        nonce = secrets.token_hex(16)
        connection.settimeout(_TOKEN_S)
        _reply(connection, {"nonce": nonce})
        words = read_line(connection, limit_s=_TOKEN_S)
        proof = words.pop("proof")
        if not hmac.compare_digest(str(proof).encode(), prove(self._token, nonce, words).encode()):
            raise PermissionError("a stranger")
        return words


def read_line(connection: socket.socket, *, limit_s: float) -> dict[str, Any]:
    """What the other side says before it waits for an answer; a byte now and then makes the time no longer."""
    line, end = b"", time.monotonic() + limit_s
    while not line.endswith(b"\n"):
        left_s = end - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("no whole line came in time")
        connection.settimeout(left_s)
        part = connection.recv(_LONGEST_LINE - len(line))
        if not part:
            raise ConnectionAbortedError(errno.ECONNABORTED, "The other side closed the connection")
        line += part
    held: dict[str, Any] = json.loads(line)
    return held


def _count(connection: socket.socket, _words: Mapping[str, Any]) -> None:
    """Count datagrams until the sender says over the connection that it is done."""
    ticket = secrets.token_hex(8)
    with socket.socket(connection.family, socket.SOCK_DGRAM) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        end.setsockopt(socket.SOL_SOCKET, _COUNT_OVERFLOWS, 1)
        end.bind((connection.getsockname()[0], 0))
        _reply(connection, {"port": end.getsockname()[1], "ticket": ticket})
        received, overflowed, is_done = 0, 0, False
        last = time.monotonic() + _LONGEST_S
        while time.monotonic() < last:
            ready, _, _ = select.select([end] if is_done else [end, connection], [], [], _wait_s(is_done))
            if not ready:
                break
            if end in ready:
                data, extra, _flags, _from = end.recvmsg(2048, socket.CMSG_SPACE(4))
                received += data.startswith(ticket.encode())
                overflowed = _overflows(extra) or overflowed
            if connection in ready:
                connection.recv(1)
                is_done = True
        _reply(connection, {"received": received, "overflowed": overflowed})


def _wait_s(is_done: bool) -> float:
    return _LATE_S if is_done else _LONGEST_S


def _overflows(extra: list[tuple[int, int, bytes]]) -> int:
    for level, kind, data in extra:
        if (level, kind) == (socket.SOL_SOCKET, _COUNT_OVERFLOWS) and len(data) >= 4:
            return int(struct.unpack("=I", data[:4])[0])
    return 0


def _hello(connection: socket.socket, _: Mapping[str, Any]) -> None:
    _reply(connection, {})


def _echo(connection: socket.socket, _words: Mapping[str, Any]) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _reply(connection, {})
    for _ in range(_MOST_ECHOES):
        data = connection.recv(64)
        if not data:
            return
        connection.sendall(data)


def _sink(connection: socket.socket, words: Mapping[str, Any]) -> None:
    """Take what comes for a while, and say how much it was after the first part, which is never typical."""
    _reply(connection, {})
    buffer = bytearray(1 << 20)
    connection.recv_into(buffer)
    begin = time.monotonic()
    skip_until = begin + words["skip_s"]
    end = min(skip_until + words["seconds"], begin + _LONGEST_S)
    first, last, total = 0.0, 0.0, 0
    while (now := time.monotonic()) < end:
        connection.settimeout(max(0.001, end - now))
        with suppress(TimeoutError):
            count = connection.recv_into(buffer)
            if not count:
                break
            last = time.monotonic()
            if first:
                total += count
            elif last >= skip_until:
                first = last
    connection.settimeout(_LONGEST_S)
    _reply(connection, {"bytes": total, "seconds": last - first})


def _reply(connection: socket.socket, held: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(held).encode() + b"\n")
