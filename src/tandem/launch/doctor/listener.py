"""The receiving side of a measurement between two hosts: answers, echoes, counts bytes and datagrams."""

import errno
import hmac
import json
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Semaphore, Thread
from typing import Any

__all__ = ["TICKET_BYTES", "Listener"]

TICKET_BYTES = 16
"""How much of the token every datagram begins with."""

_LONGEST_S = 10.0
_TOKEN_S = 3.0
"""How long whoever connects may take to show the token."""
_MOST_AT_ONCE = 256
"""Connections; a few for each host that measures, and strangers'."""
_LATE_S = 0.2
_COUNT_OVERFLOWS = 40
"""Linux's SO_RXQ_OVFL, which Python does not name: how many datagrams our own buffer had no room for."""


class Listener:
    """Listens at one address of this host, and serves those who know the token."""

    def __init__(self, token: str, *, address: str) -> None:
        self._token, self._address = token, address
        self._servers: list[socket.socket] = []
        self._room = Semaphore(_MOST_AT_ONCE)

    def open(self, port: int) -> int | None:
        """Listen on a port, or on a free one for 0; gives the port, or None where another program has it."""
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        try:
            server = socket.create_server((self._address, port), family=family, backlog=128)
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
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                if self._room.acquire(blocking=False):
                    Thread(target=self._serve_and_leave, args=(connection,), daemon=True).start()
                else:
                    connection.close()

    def _serve_and_leave(self, connection: socket.socket) -> None:
        try:
            self._serve(connection)
        finally:
            self._room.release()

    def _serve(self, connection: socket.socket) -> None:
        kinds: Mapping[str, Callable[[socket.socket, Mapping[str, Any]], None]]
        kinds = {"hello": _hello, "echo": _echo, "sink": _sink, "count": self._count}
        # A stranger's connection, or one that breaks, is dropped: the other side says what it saw.
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError), connection:
            connection.settimeout(_TOKEN_S)
            words = json.loads(connection.makefile("rb").readline(1000))
            connection.settimeout(_LONGEST_S)
            if hmac.compare_digest(str(words["token"]), self._token):
                kinds[words["do"]](connection, words)

    def _count(self, connection: socket.socket, _: Mapping[str, Any]) -> None:
        """Count datagrams until the sender says over the connection that it is done."""
        with socket.socket(connection.family, socket.SOCK_DGRAM) as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            end.setsockopt(socket.SOL_SOCKET, _COUNT_OVERFLOWS, 1)
            end.bind((connection.getsockname()[0], 0))
            _reply(connection, {"port": end.getsockname()[1]})
            received, overflowed, is_done = 0, 0, False
            while ready := select.select([end] if is_done else [end, connection], [], [], _wait_s(is_done))[
                0
            ]:
                if end in ready:
                    data, extra, _flags, _from = end.recvmsg(2048, socket.CMSG_SPACE(4))
                    received += data.startswith(self._token[:TICKET_BYTES].encode())
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


def _echo(connection: socket.socket, _: Mapping[str, Any]) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _reply(connection, {})
    while data := connection.recv(64):
        connection.sendall(data)


def _sink(connection: socket.socket, words: Mapping[str, Any]) -> None:
    """Take what comes for a while, and say how much it was after the first part, which is never typical."""
    _reply(connection, {})
    buffer = bytearray(1 << 20)
    connection.recv_into(buffer)
    begin = time.monotonic()
    skip_until, end = begin + words["skip_s"], begin + words["skip_s"] + words["seconds"]
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
