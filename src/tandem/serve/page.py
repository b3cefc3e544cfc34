"""The page to translate in a browser, and what belongs to it."""

from functools import partial

from starlette.routing import Route

from tandem.web.files import file_route, packaged

__all__ = ["page_routes"]

FILES = {
    "/": "translate.html",
    "/translate.css": "translate.css",
    "/translate.js": "translate.js",
    "/icon.svg": "icon.svg",
}


def page_routes() -> list[Route]:
    """The paths of the page."""
    return [
        file_route(path, name, partial(packaged, "tandem.serve", name), is_kept=path != "/")
        for path, name in FILES.items()
    ]
