"""A client that costs little beside the server that it measures: one kept connection, and little of HTTP."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

__all__ = ["Answer", "CutError", "HttpClient"]


class CutError(Exception):
    """The connection ended after a request was sent and before it was answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    retry_after_s: int | None
    """None where the answer does not say when to come again."""


class HttpClient:
    """Sends one request after the other; connects again where the server has ended the connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    async def post(self, path: str, body: bytes, *, headers: Mapping[str, str]) -> Answer:
        """Post and read the answer; an OSError says that there is no connection to be had."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
            answer, goes_on = await self._read(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            self._close()
            raise CutError from error
        if not goes_on:
            self._close()
        return answer

    async def _read(self, reader: asyncio.StreamReader) -> tuple[Answer, bool]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(fields["content-length"]))
        later = fields.get("retry-after", "")
        answer = Answer(
            status=int(head[0].split()[1]),
            body=body,
            retry_after_s=int(later) if later.isdecimal() else None,
        )
        return answer, fields.get("connection") != "close"

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
