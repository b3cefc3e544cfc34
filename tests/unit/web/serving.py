"""A small application behind the limits of connections, and raw connections to it."""

import asyncio
import select
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tandem.web.limits import ConnectionLimits
from tandem.web.listening import listen
from tandem.web.server import Server

DEADLINE_S = 60.0
"""For conditions that come true at once where nothing is wrong."""
HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "
"""A head that does not end."""


@dataclass(frozen=True, slots=True)
class Small:
    """Answers at once, when it is told to, without end, or with what was sent."""

    go_on: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    each_begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    given_up: threading.Event = field(default_factory=threading.Event)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/healthz", self.health),
                Route("/late", self.late),
                Route("/endless", self.endless),
                Route("/stream", self.stream),
                Route("/echo", self.echo, methods=["POST"]),
            ]
        )

    async def health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def echo(self, request: Request) -> Response:
        return Response(await request.body())

    def late(self, _request: Request) -> Response:
        self.begun.set()
        self.each_begun.release()
        assert self.go_on.wait(DEADLINE_S)
        return JSONResponse({"status": "late"})

    async def endless(self, _request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield bytes(65_536)
                    await asyncio.sleep(0)  # lets the loop see that nobody is there
            finally:
                self.given_up.set()

        return StreamingResponse(pieces())

    async def stream(self, _request: Request) -> Response:
        def lines() -> Iterator[bytes]:
            yield b"first\n"
            assert self.go_on.wait(DEADLINE_S)
            yield b"last\n"

        return StreamingResponse(lines())


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where it answers."""

    small: Small
    port: int

    def connect(self, sent: bytes = b"", *, source: str = "127.0.0.1") -> socket.socket:
        raw = socket.create_connection(("127.0.0.1", self.port), DEADLINE_S, source_address=(source, 0))
        raw.sendall(sent)
        return raw

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=DEADLINE_S)


@contextmanager
def answering(limits: ConnectionLimits) -> Iterator[Address]:
    """Serve until the end of the block."""
    small = Small()
    server = Server(small.app(), limits=limits, lifespan="off", timeout_graceful_shutdown=1)
    with ExitStack() as stack:
        bound = stack.enter_context(listen("127.0.0.1", 0))
        port = bound.getsockname()[1]
        started = threading.Event()
        thread = threading.Thread(target=lambda: server.serve_on(bound, on_start=started.set))
        thread.start()
        stack.callback(thread.join, DEADLINE_S)
        stack.callback(setattr, server, "should_exit", True)
        stack.callback(small.go_on.set)
        assert started.wait(DEADLINE_S)
        yield Address(small=small, port=port)


def whole(raw: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    told = b""
    with suppress(ConnectionResetError):
        while data := raw.recv(65_536):
            told += data
    return told


def trickle(raw: socket.socket) -> bytes:
    """Send a byte now and then until the connection ends; what came meanwhile."""
    told = b""
    with suppress(ConnectionError):
        while True:
            raw.sendall(b"x")
            if select.select([raw], [], [], 0.02)[0]:
                data = raw.recv(65_536)
                if not data:
                    break
                told += data
    return told


def one_answer(raw: socket.socket) -> bytes:
    """What comes up to the end of an answer of JSON, of a connection that stays."""
    told = b""
    while not told.endswith(b"}"):
        data = raw.recv(65_536)
        assert data, told
        told += data
    return told
