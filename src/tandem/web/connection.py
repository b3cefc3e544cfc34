"""A connection that cannot be held for ever: requests that do not arrive and answers that are not taken are cut off."""

import asyncio
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from tandem.web.clients import client_network
from tandem.web.limits import ConnectionLimits

__all__ = ["Connection", "ConnectionConfig"]

LEAST_TAKEN_BYTES = 30_000
"""In each `unread_s`: half a kilobyte a second is slower than any line on which a page could be used."""
NETWORK_SHARE = 0.75
"""Of the connections, for one network: where all come through one proxy, that is enough too."""
BACKLOG = 1_024
UNREADABLE = b'{"error":"This is no HTTP request that can be read here."}'


class ConnectionConfig(uvicorn.Config):
    """Settings of a server whose connections have limits."""

    def __init__(self, app: Any, *, limits: ConnectionLimits, most: int, **settings: Any) -> None:
        """`most` connections are there files for."""
        # A class rather than "auto" or a name: httptools, where it is installed, would go round the limits.
        super().__init__(app, http=Connection, **settings)
        self.limits = replace(limits, connections=min(limits.connections, most))
        # asyncio accepts as many as the backlog in one go, before any of them can be refused.
        self.backlog = min(BACKLOG, most)


class _Waits(Enum):
    """For what of a request."""

    HEAD = auto()
    BODY = auto()


class Connection(H11Protocol):
    """uvicorn's, with limits; `look` is to be called about once a second."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection on; where there are too many, one goes."""
        super().connection_made(transport)
        # What the kernel would take beyond would be taken by nobody yet: a slow client would seem to take nothing.
        with suppress(OSError, AttributeError):  # not every system has it
            transport.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, LEAST_TAKEN_BYTES
            )
        self.limits = cast("ConnectionConfig", self.config).limits
        self.network = client_network(self.client[0] if self.client else "")
        self.waits: _Waits | None = _Waits.HEAD
        self.since = self.loop.time()
        self._unread: tuple[float, int] | None = None
        self._make_room()

    def _make_room(self) -> None:
        """Let the oldest go whose request is not whole, among those of the network that has most connections.

        One network does not get all places, even with requests that are being answered.
        """
        everyone, most = cast("set[Connection]", self.connections), self.limits.connections
        if len(everyone) <= most * NETWORK_SHARE:
            return
        counts = Counter(each.network for each in everyone)
        waiting = [each for each in everyone if each.waits is not None]
        if counts[self.network] > most * NETWORK_SHARE:
            waiting = [each for each in waiting if each.network == self.network]
        elif len(everyone) <= most:
            return
        gone = max(waiting, key=lambda each: (counts[each.network], -each.since))
        # At once: it is told of its end only in the next round of the loop.
        everyone.discard(gone)
        gone.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # nonsense behind a request that is being answered
            self.transport.abort()
        self._note()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._note()

    def _note(self) -> None:
        """Note since when it waits for what; a byte more of the same changes nothing."""
        waits = self._waiting()
        if waits is not self.waits:
            self.waits, self.since = waits, self.loop.time()

    def _waiting(self) -> _Waits | None:
        if self.conn.their_state is h11.SEND_BODY:
            return _Waits.BODY
        return _Waits.HEAD if self.conn.their_state is h11.IDLE and self._is_answered else None

    @property
    def _is_answered(self) -> bool:
        """Whether no request is being answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def resume_writing(self) -> None:
        """Go on with the answer: most of what waited was taken."""
        self._unread = None
        super().resume_writing()

    def look(self) -> None:
        """Cut it off where it has taken too long."""
        now = self.loop.time()
        limit_s = {None: float("inf"), _Waits.HEAD: self.limits.head_s, _Waits.BODY: self.limits.body_s}
        if now - self.since > limit_s[self.waits] or self._is_left_unread(now):
            self.transport.abort()

    def _is_left_unread(self, now: float) -> bool:
        # Otherwise more is written meanwhile, and what waits does not tell what was taken.
        is_only_taken = self.flow.write_paused or self._is_answered or self.transport.is_closing()
        size = self.transport.get_write_buffer_size() if is_only_taken else 0
        if not size:
            self._unread = None
            return False
        if self._unread is None:
            self._unread = now, size
            return False
        begun, before = self._unread
        if now - begun <= self.limits.unread_s:
            return False
        self._unread = now, size
        return before - size < LEAST_TAKEN_BYTES

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  (uvicorn's)
        """Answer nonsense, where no answer has begun."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(UNREADABLE))),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ]
        response = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (response, h11.Data(data=UNREADABLE), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
