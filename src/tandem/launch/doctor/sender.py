"""The sending side of a measurement between two hosts: can it connect, how fast and how surely does it send."""

import errno
import json
import math
import select
import socket
import statistics
import struct
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tandem.launch.doctor.facts import OPEN, SILENT, Outcome
from tandem.launch.doctor.listener import prove, read_line

__all__ = ["measure", "try_port"]

_CONNECT_S = 3.0
_TRIES = 3
"""At once: a lossy link may lose the first packet of one, and its repetition."""
_BEST: tuple[Outcome, ...] = (OPEN, SILENT)
"""Of several tries, what counts before anything else."""
_LONGEST_S = 10.0
_ECHOES, _ECHO_S = 100, 0.3
_LONGEST_PAYLOAD, _SHORTEST_PAYLOAD = 1200, 64
_SHORTEST_SPRAY_S, _LONGEST_SPRAY_S = 0.5, 5.0
_SHARE = 0.2
"""Of the measured speed, at which datagrams are sent: none is lost for want of room on the way."""
_TICK_S = 0.001
_AT_ONCE = 20


def try_port(address: str, port: int, token: str) -> Outcome:
    """Whether the other side's listener answers at this port, and if not, why."""
    with ThreadPoolExecutor(_TRIES) as pool:
        outcomes = list(pool.map(lambda _: _try_once(address, port, token), range(_TRIES)))
    return next((each for best in _BEST for each in outcomes if each == best), outcomes[0])


def measure(address: str, port: int, token: str, *, seconds: float, datagrams: int) -> Mapping[str, float]:
    """Latency, bandwidth and, where datagrams are asked for, the share of them that gets lost."""
    latency_s = _twice(lambda: _latency(address, port, token))
    bytes_per_s = _twice(lambda: _bandwidth(address, port, token, seconds))
    loss = math.nan
    if datagrams:
        # A firewall on this host refuses to send what it would not let through.
        with suppress(OSError):
            loss = _loss(address, port, token, bytes_per_s=bytes_per_s, datagrams=datagrams)
    return {"latency_s": latency_s, "bytes_per_s": bytes_per_s, "loss": loss}


def _twice(measured: Callable[[], float]) -> float:
    """A second chance: on a lossy link, which is to be measured and not given up, one connection may stall."""
    try:
        return measured()
    except OSError:
        return measured()


def _try_once(address: str, port: int, token: str) -> Outcome:
    try:
        connection = socket.create_connection((address, port), timeout=_CONNECT_S)
    except TimeoutError:
        return "timed out"
    except ConnectionError:
        return "refused"
    except OSError as error:
        routes = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM}
        return "no route" if error.errno in routes else "refused"
    # Whatever comes of it, somebody listens.
    with connection, suppress(OSError, ValueError, KeyError, TypeError):
        _ask(connection, token, {"do": "hello"}, limit_s=_CONNECT_S)
        read_line(connection, limit_s=_CONNECT_S)
        return OPEN
    return SILENT


def _connected(address: str, port: int, token: str, words: Mapping[str, Any]) -> socket.socket:
    """A connection whose request was answered."""
    connection = socket.create_connection((address, port), timeout=_LONGEST_S)
    try:
        _ask(connection, token, words)
        if words["do"] != "count":
            _read(connection)
        connection.settimeout(_LONGEST_S)
    except BaseException:
        connection.close()
        raise
    return connection


def _ask(
    connection: socket.socket, token: str, words: Mapping[str, Any], *, limit_s: float = _LONGEST_S
) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    nonce = str(read_line(connection, limit_s=limit_s)["nonce"])
    connection.sendall(json.dumps({**words, "proof": prove(token, nonce, words)}).encode() + b"\n")


def _read(connection: socket.socket) -> dict[str, Any]:
    return read_line(connection, limit_s=_LONGEST_S)


def _latency(address: str, port: int, token: str) -> float:
    times: list[float] = []
    with _connected(address, port, token, {"do": "echo"}) as connection:
        end = time.monotonic() + _ECHO_S
        while len(times) < _ECHOES and (time.monotonic() < end or len(times) < 3):
            begin = time.monotonic()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.monotonic() - begin)
    return statistics.median(times)


def _bandwidth(address: str, port: int, token: str, seconds: float) -> float:
    words = {"do": "sink", "seconds": seconds, "skip_s": seconds / 4}
    block = memoryview(bytes(1 << 18))
    with _connected(address, port, token, words) as connection:
        connection.setblocking(False)
        end = time.monotonic() + _LONGEST_S
        while time.monotonic() < end:
            ready = select.select([connection], [connection], [], 1.0)
            if ready[0]:
                break
            if ready[1]:
                connection.send(block)
        taken = _read(connection)
        # What is still in our buffer shall not be sent: the next measurement waits for a quiet link.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return taken["bytes"] / taken["seconds"] if taken["seconds"] > 0 else math.nan


def _loss(address: str, port: int, token: str, *, bytes_per_s: float, datagrams: int) -> float:
    """Share of datagrams; nan where none passes at all, while connections do: that is a firewall."""
    pace = _SHARE * bytes_per_s if bytes_per_s > 0 else 1e5
    lasting_s = min(max(datagrams * _LONGEST_PAYLOAD / pace, _SHORTEST_SPRAY_S), _LONGEST_SPRAY_S)
    size = int(min(max(pace * lasting_s / datagrams, _SHORTEST_PAYLOAD), _LONGEST_PAYLOAD))
    with _connected(address, port, token, {"do": "count"}) as connection:
        answer = _read(connection)
        to = (address, answer["port"])
        payload = answer["ticket"].encode().ljust(size, b"x")
        with socket.socket(connection.family, socket.SOCK_DGRAM) as end:
            # Connected, it takes datagrams from nobody else.
            end.connect(to)
            sent = _spray(end, payload, count=datagrams, lasting_s=lasting_s)
        connection.sendall(b"x")
        counted = _read(connection)
    if not counted["received"]:
        return math.nan
    # What the other side's buffer had no room for did arrive there.
    arrived: int = counted["received"] + counted["overflowed"]
    return max(0.0, 1 - arrived / sent)


def _spray(end: socket.socket, payload: bytes, *, count: int, lasting_s: float) -> int:
    """Send at an even pace; after a pause it is not made up for at once."""
    sent, owed, last = 0, 0.0, time.monotonic()
    while sent < count:
        time.sleep(_TICK_S)
        now = time.monotonic()
        owed, last = min(owed + (now - last) * count / lasting_s, _AT_ONCE), now
        for _ in range(min(int(owed), count - sent)):
            # A firewall's answer to an earlier one; what arrives is counted at the other end.
            with suppress(ConnectionRefusedError):
                end.send(payload)
            sent += 1
            owed -= 1
    return sent
