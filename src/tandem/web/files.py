"""Files of a page, sent once: a browser that has one already is told so. No name of a file is made of a request."""

import asyncio
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tandem.web.packing import VARY, accepts_packed, pack

__all__ = ["file_route", "kind_of", "packaged", "prepare"]

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def kind_of(name: str) -> str:
    """The content type of a file by its name; empty where it is none of a page's."""
    return KINDS.get(f".{name.rpartition('.')[2]}", "")


@cache
def packaged(package: str, name: str) -> bytes:
    """A file of the folder `page` of a package."""
    return (files(package) / "page" / name).read_bytes()


def file_route(path: str, name: str, content: Callable[[], bytes], *, is_kept: bool = True) -> Route:
    """The path at which a file is found, which browsers may keep."""
    caching = "no-cache" if is_kept else "no-store"
    return Route(path, partial(_answer, name=name, content=content, caching=caching))


def prepare(data: bytes) -> None:
    """Make ready what takes long to send."""
    _tag(data)
    _packed(data)


async def _answer(request: Request, *, name: str, content: Callable[[], bytes], caching: str) -> Response:
    data, is_packed = content(), accepts_packed(request)
    headers = {**VARY, "ETag": f'"{_tag(data)}{"-gzip" if is_packed else ""}"', "Cache-Control": caching}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = kind_of(name)
    if is_packed:
        headers["Content-Encoding"] = "gzip"
        # Not in the loop: megabytes take a while, the first time.
        data = await asyncio.to_thread(_packed, data)
    return Response(data, headers=headers)


@cache
def _packed(data: bytes) -> bytes:
    return pack(data)


@cache
def _tag(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
