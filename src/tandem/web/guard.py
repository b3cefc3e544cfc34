"""Before every request: its size, its method, the name it asks by, whose page it is; and headers that browsers heed."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.web.names import Names
from tandem.web.refusal import Refusal, RefusalPage, answer_refusal
from tandem.web.token import Token

__all__ = ["Guard"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self'{images}; connect-src 'self'; "
    "base-uri 'none'; form-action {forms}; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN = "/healthz"
"""Tells nothing but that the server lives, so whoever watches over it needs no token."""
MOST_TARGET_BYTES = 8_192
MOST_HEADER_BYTES = 16_384
MOST_HEADERS = 100


class Guard:
    """ASGI middleware around a whole application, whose failures have its headers too."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Names,
        token: Token | None = None,
        is_read_only: bool = False,
        page: RefusalPage | None = None,
        policy: str = POLICY.format(styles="", images="", forms="'none'"),
    ) -> None:
        self._app, self._names, self._token = app, names, token
        self._is_read_only, self._page = is_read_only, page
        self._headers = {"Content-Security-Policy": policy, **HEADERS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            answer = self._check(scope)
        except Refusal as refusal:
            answer = answer_refusal(Headers(scope=scope), refusal, self._page)
        await (answer or self._app)(scope, receive, sealed)

    def _check(self, scope: Scope) -> Response | None:
        """Another answer than the application's, where one is due; raises a refusal."""
        _check_size(scope)
        method, headers = scope["method"], Headers(scope=scope)
        if self._is_read_only and method not in {"GET", "HEAD"}:
            sentence = "Everything here is only read: ask with GET."
            raise Refusal(405, sentence, headers={"Allow": "GET, HEAD"})
        if refusal := self._names.refusal(method, headers):
            raise refusal
        if self._token is None or scope["path"] == OPEN:
            return None
        return self._token.admit(scope)


def _check_size(scope: Scope) -> None:
    if len(scope["raw_path"]) + len(scope["query_string"]) > MOST_TARGET_BYTES:
        raise Refusal(414, f"The address is longer than {MOST_TARGET_BYTES:,} bytes.")
    headers = scope["headers"]
    if (
        len(headers) > MOST_HEADERS
        or sum(len(name) + len(value) for name, value in headers) > MOST_HEADER_BYTES
    ):
        raise Refusal(431, f"The headers are more than {MOST_HEADERS} or {MOST_HEADER_BYTES:,} bytes.")
    # A proxy before this one may have gone by the other, and take the end of this request for another request.
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
        sentence = "A request has either Content-Length or Transfer-Encoding, not both."
        raise Refusal(400, sentence, headers={"Connection": "close"})
