"""Bytes from one connection to another, and how connections of the mesh begin and end."""

import socket
import ssl
from contextlib import suppress

__all__ = ["HEADER_BYTES", "end", "pump", "read_header", "tune"]

HEADER_BYTES = 256
"""With which every connection of the mesh begins."""
_BLOCK_BYTES = 1 << 18


def pump(source: socket.socket, target: socket.socket, twin: socket.socket) -> None:
    """Carry bytes until the source ends, and then end the target and what the other direction reads from."""
    block = bytearray(_BLOCK_BYTES)
    view = memoryview(block)
    with suppress(OSError, ValueError):
        while count := source.recv_into(block):
            target.sendall(view[:count])
    end(target)
    end(twin)


def end(connection: socket.socket) -> None:
    """End a connection, also for a thread that waits in it; TLS is not said goodbye, which would need that thread."""
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def tune(connection: socket.socket) -> None:
    """Send at once what is there, and notice in the end that the other side is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def read_header(connection: ssl.SSLSocket) -> bytes:
    """The first bytes of a connection, of fixed length, so that nothing behind them is taken."""
    data = b""
    while len(data) < HEADER_BYTES:
        part = connection.recv(HEADER_BYTES - len(data))
        if not part:
            raise ConnectionAbortedError("ended before it said what for")
        data += part
    return data
