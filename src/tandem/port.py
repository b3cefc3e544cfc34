"""A port to serve on: taken before anything is loaded, named as a browser wants it, and served until a signal."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import FrameType
from typing import Any

import uvicorn

from tandem.errors import TandemError

__all__ = ["Server", "address_of", "is_loopback", "listen"]

ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of nobody, for documentation; nothing is sent to them."""
DISCARD = 9


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address; before models are loaded, since that takes longer than to see that it is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise TandemError(f"There is no address {host!r} here: take another --host.") from error
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise TandemError(
            f"Cannot listen on {host} port {port} ({error.strerror}): take another --port, or --port 0 for a free one."
        ) from error
    return bound


def is_loopback(bound: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return _ip(bound).is_loopback


def address_of(bound: socket.socket) -> str:
    """The address for a browser, with a slash at its end; of every address of this machine, one that others reach."""
    host, port = bound.getsockname()[:2]
    if _ip(bound).is_unspecified:
        host = _outward(bound.family) or socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _ip(bound: socket.socket) -> IPv4Address | IPv6Address:
    return ip_address(bound.getsockname()[0].partition("%")[0])


def _outward(family: int) -> str:
    """The address from which this machine speaks to others; empty where it speaks to none."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((ELSEWHERE[socket.AddressFamily(family)], DISCARD))
            return str(asking.getsockname()[0])
    except OSError:
        return ""


class Server(uvicorn.Server):
    """Ends on SIGTERM or Ctrl-C, however often it is asked, and says nothing by itself."""

    def __init__(self, app: Any, **settings: Any) -> None:
        """The settings are uvicorn's."""
        quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
        super().__init__(uvicorn.Config(app, http="h11", ws="none", loop="asyncio", **quiet, **settings))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask for the end on a signal; those that come later, up to the end of the process, change nothing."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  (uvicorn's)
        """End in order."""
        self.should_exit = True

    def serve_on(self, bound: socket.socket, *, on_start: Callable[[], None]) -> None:
        """Serve until a signal asks for the end; `on_start` is called when the first request can come.

        The process is to end then: signals stay without effect.
        """
        asyncio.run(self._serve_on(bound, on_start))

    async def _serve_on(self, bound: socket.socket, on_start: Callable[[], None]) -> None:
        serving = asyncio.create_task(self.serve(sockets=[bound]))
        while not self.started and not serving.done():
            await asyncio.sleep(0.01)
        if self.started:
            on_start()
        await serving
