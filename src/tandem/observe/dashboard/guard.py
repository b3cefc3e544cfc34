"""Before every request: who may ask, by which name and how; and headers that browsers heed."""

import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.errors import TandemError
from tandem.observe.dashboard.refusal import refuse

__all__ = ["Guard", "Token", "read_token"]

POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LEAST_CHARACTERS = 16
OPEN = "/healthz"
"""Tells nothing but that the server lives, so whoever watches over it needs no token."""
NAMED = re.compile(r"\[?([^\]]*?)\]?(?::\d+)?")


@dataclass(frozen=True, slots=True)
class Token:
    """What opens the server; only its digest is kept."""

    digest: bytes

    @classmethod
    def of(cls, text: str) -> "Token":
        """From what a person types."""
        return cls(_digest(text))

    @property
    def cookie(self) -> str:
        """Name of the cookie that holds it: servers on other ports of this host have their own."""
        return f"tandem-{self.digest.hex()[:8]}"

    def fits(self, text: str) -> bool:
        """Whether it is this one, in a time that says nothing."""
        return compare_digest(_digest(text), self.digest)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def read_token(path: Path | None) -> str:
    """The token in the first line of a file; without a file a new one that cannot be guessed."""
    if path is None:
        return secrets.token_urlsafe(24)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TandemError(f"{path} is not UTF-8: write a token into its first line.") from error
    token = lines[0].strip() if lines else ""
    if len(token) < LEAST_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise TandemError(
            f"The first line of {path} is no token: write at least {LEAST_CHARACTERS} "
            "letters, digits and marks without spaces."
        )
    return token


class Guard:
    """ASGI middleware; where only this machine is served, the request must name it, as no foreign page can."""

    def __init__(self, app: ASGIApp, *, token: Token | None, is_local: bool) -> None:
        self._app, self._token, self._is_local = app, token, is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        caching = "no-store" if _is_changing(scope["path"]) else "no-cache"

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update({**HEADERS, "Cache-Control": caching})
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in {"GET", "HEAD"}:
            sentence = "Everything here is only read: ask with GET."
            return refuse(headers, 405, sentence, headers={"Allow": "GET, HEAD"})
        if self._is_local and not _is_loopback_name(headers.get("host", "")):
            sentence = (
                "This server answers to localhost only: bind it with --host to reach it by another name."
            )
            return refuse(headers, 403, sentence)
        if self._token is None or scope["path"] == OPEN:
            return None
        return self._check(scope, headers, self._token)

    def _check(self, scope: Scope, headers: Headers, token: Token) -> Response | None:
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value.strip() for name, value in asked if name == "token"]
        rest = [pair for pair in asked if pair[0] != "token"]
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            given.append(bearer.strip())
        if not given and (cookie := _cookie(headers, token.cookie)):
            given.append(cookie)
        if not given:
            sentence = (
                "A token is needed: open the address that was printed at the start, which ends in ?token=."
            )
            return refuse(headers, 401, sentence, headers={"WWW-Authenticate": "Bearer"}, kept=rest)
        if not token.fits(given[0]):
            return refuse(headers, 403, "This token is not the one of this server.", kept=rest)
        if len(rest) < len(asked):
            return _admit(scope, rest, cookie=(token.cookie, given[0]))
        return None


def _admit(scope: Scope, rest: list[tuple[str, str]], *, cookie: tuple[str, str]) -> Response:
    """Give the browser a cookie instead, so that the token is in no address, history or log."""
    # One slash at the beginning: two would lead to another host.
    path = "/" + scope["raw_path"].decode("latin-1").partition("?")[0].lstrip("/\\")
    answer = RedirectResponse(path + (f"?{urlencode(rest)}" if rest else ""), status_code=303)
    answer.set_cookie(*cookie, httponly=True, samesite="strict", path="/")
    return answer


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _is_changing(path: str) -> bool:
    return not path.startswith("/assets/")


def _is_loopback_name(host: str) -> bool:
    """Whether a Host header names this machine: a foreign name that leads here is a page that wants to look in."""
    found = NAMED.fullmatch(host)
    name = found[1].lower() if found else ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
