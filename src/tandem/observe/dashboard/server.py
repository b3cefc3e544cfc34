"""The dashboard's process: serves until it is asked to end, and ends at once."""

import socket
import threading
from collections.abc import Callable

from starlette.types import ASGIApp

from tandem.observe.dashboard.app import Dashboard
from tandem.observe.dashboard.assets import prepare_script
from tandem.observe.dashboard.memory import share_memory
from tandem.web.limits import ConnectionLimits
from tandem.web.server import Server

__all__ = ["serve_dashboard"]

GRACE_S = 1
"""For answers that are being made when the end is asked for; streams end by themselves."""
LIMITS = ConnectionLimits(body_s=10.0, connections=256)
"""No request has a body that is read."""


class _Server(Server):
    """Ends also with open streams."""

    def __init__(self, app: ASGIApp, dashboard: Dashboard, *, is_behind_proxy: bool) -> None:
        super().__init__(
            app,
            limits=LIMITS,
            is_behind_proxy=is_behind_proxy,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_S,
        )
        self._dashboard = dashboard

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then everything."""
        self._dashboard.ending.set()
        await super().shutdown(sockets)


def serve_dashboard(
    app: ASGIApp,
    dashboard: Dashboard,
    bound: socket.socket,
    *,
    is_behind_proxy: bool = False,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal asks for the end; `on_start` is called when the first request can come.

    The process is to end then: signals stay without effect.
    """
    share_memory()
    threading.Thread(target=prepare_script, daemon=True).start()
    _Server(app, dashboard, is_behind_proxy=is_behind_proxy).serve_on(bound, on_start=on_start)
