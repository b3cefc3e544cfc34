"""The server's process: a port, an orderly end."""

import asyncio
import socket
from collections.abc import Callable

from starlette.types import ASGIApp

from tandem.serve.app import Service
from tandem.web.limits import ConnectionLimits
from tandem.web.server import Server

__all__ = ["Drain", "serve_app"]

LAST_CALL_S = 1.0
"""From the end of listening to the end of idle connections: what is on its way on one is still answered."""

SPARE_S = 5.0
"""Beyond the deadline of requests, for those that are being read."""

MOST_CONNECTIONS = 1_024
"""Each with a body of some hundred kilobytes at most."""


class Drain(Server):
    """Ends in order: takes no new connections, answers what was taken on, and is done."""

    def __init__(
        self, app: ASGIApp, service: Service, *, deadline_s: float, is_behind_proxy: bool = False
    ) -> None:
        grace_s = round(deadline_s + SPARE_S)
        # The application answers a body that is late before its connection is cut off.
        limits = ConnectionLimits(body_s=deadline_s + SPARE_S, connections=MOST_CONNECTIONS)
        super().__init__(
            app,
            limits=limits,
            is_behind_proxy=is_behind_proxy,
            lifespan="on",
            timeout_graceful_shutdown=grace_s,
        )
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order: every answer from now on says that its connection is over."""
        self._service.is_draining = True
        for server in self.servers:
            server.close()
        until = asyncio.get_running_loop().time() + LAST_CALL_S
        while self.server_state.connections and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def serve_app(
    app: ASGIApp,
    service: Service,
    bound: socket.socket,
    *,
    deadline_s: float,
    is_behind_proxy: bool = False,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal asks for the end; `on_start` is called when the first request can come.

    The process is to end then: signals stay without effect.
    """
    Drain(app, service, deadline_s=deadline_s, is_behind_proxy=is_behind_proxy).serve_on(
        bound, on_start=on_start
    )
