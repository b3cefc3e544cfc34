"""The page to translate in a browser, and what belongs to it."""

from functools import partial
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["page_routes"]

FILES = {
    "/": ("translate.html", "text/html; charset=utf-8"),
    "/translate.css": ("translate.css", "text/css; charset=utf-8"),
    "/translate.js": ("translate.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


def page_routes() -> list[Route]:
    """The paths of the page."""
    return [
        Route(path, partial(_answer, content=_read(name), kind=kind)) for path, (name, kind) in FILES.items()
    ]


async def _answer(_request: Request, *, content: bytes, kind: str) -> Response:
    return Response(content, headers={"Content-Type": kind})


def _read(name: str) -> bytes:
    return (files("tandem.serve") / "page" / name).read_bytes()
