"""How a request is refused: a status and one sentence, as JSON to programs and, where there is one, as a page."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

__all__ = ["Refusal", "RefusalPage", "answer_refusal", "refusal_handlers"]


class Refusal(Exception):  # noqa: N818  (an answer rather than an error of ours)
    """The request is answered with this status and sentence."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        headers: Mapping[str, str] | None = None,
        kept: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Where `kept` is given, a token is missing: a page has a field for it, and keeps this of the address."""
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}
        self.kept = kept


class RefusalPage(Protocol):
    """Writes the page that a browser shows."""

    def __call__(self, refusal: Refusal) -> str:
        """The page."""


def answer_refusal(asked: Headers, refusal: Refusal, page: RefusalPage | None = None) -> Response:
    """Say why."""
    headers = dict(refusal.headers)
    if page is not None:
        headers["Vary"] = "Accept"
        if _is_browser(asked):
            return HTMLResponse(page(refusal), status_code=refusal.status, headers=headers)
    return JSONResponse({"error": refusal.sentence}, status_code=refusal.status, headers=headers)


def _is_browser(asked: Headers) -> bool:
    """Whether somebody looks: scripts and programs ask for anything, or for JSON."""
    kinds = (each.partition(";")[0].strip().lower() for each in asked.get("accept", "").split(","))
    return "text/html" in kinds


def refusal_handlers(sentences: Mapping[int, str], page: RefusalPage | None = None) -> dict[Any, Any]:
    """What Starlette is to do with refusals, with paths and methods that it does not know, and with failures."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return answer_refusal(request.headers, error, page)

    async def unknown(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentence = sentences.get(error.status_code, error.detail)
        refusal = Refusal(error.status_code, sentence, headers=error.headers)
        return answer_refusal(request.headers, refusal, page)

    async def failed(request: Request, error: Exception) -> Response:
        sentence = f"The server failed at this request ({type(error).__name__}): please report it."
        return answer_refusal(request.headers, Refusal(500, sentence), page)

    return {Refusal: refused, HTTPException: unknown, Exception: failed}
