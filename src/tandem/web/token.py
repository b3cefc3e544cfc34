"""A token that opens a server to a browser: given once in an address, and kept in a cookie that no script reads."""

import secrets
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from tandem.errors import TandemError
from tandem.web.clients import client_of
from tandem.web.keys import Keys, Patience, bearer, read_secret_file
from tandem.web.refusal import Refusal

__all__ = ["Token", "read_token"]

LEAST_CHARACTERS = 16


_OWN_SITES = {None, "same-origin", "none"}
"""What a browser says of who led it here, where that was no page of another site."""


class Token:
    """What opens the server; only its digest is kept."""

    def __init__(self, text: str, *, patience: Patience | None = None) -> None:
        self._keys = Keys([text], name="token", patience=patience)
        # A part of another digest than the one that is compared.
        self.cookie = f"tandem-{sha256(b'cookie ' + _bytes(text)).hexdigest()[:8]}"
        """Name of the cookie that holds it: servers on other ports of this host have their own."""
        self._mark = secrets.token_urlsafe(24)
        """Before the token in a cookie: nobody guesses it, so who has it is let in though others guess tokens."""

    def admit(self, scope: Scope) -> Response | None:
        """Let a request pass; with the token in its address, by way of a cookie. Raises a refusal."""
        headers = Headers(scope=scope)
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value.strip() for name, value in asked if name == "token"]
        rest = [pair for pair in asked if pair[0] != "token"]
        if given and headers.get("sec-fetch-site") not in _OWN_SITES:
            # Neither looked at nor counted: a page could have a browser give wrong ones until it must wait.
            raise _needed(
                "Another site led here with a token, which is not looked at: write it here, or open the address "
                "that was printed at the start from the address bar.",
                rest,
            )
        mark, _, kept = _cookie(headers, self.cookie).partition(".")
        if compare_digest(_bytes(mark), _bytes(self._mark)):
            return _redirect(scope, rest) if given else None
        text = given[0] if given else bearer(headers.get("authorization")) or kept
        if not text and not given:
            raise _needed(
                "A token is needed: open the address that was printed at the start, which ends in ?token=.",
                rest,
            )
        if refusal := self._keys.check(text, client_of(scope)):
            refusal.kept = rest
            raise refusal
        return _redirect(scope, rest, cookie=(self.cookie, f"{self._mark}.{text}")) if given else None


def _needed(sentence: str, rest: list[tuple[str, str]]) -> Refusal:
    return Refusal(401, sentence, headers={"WWW-Authenticate": "Bearer"}, kept=rest)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _redirect(
    scope: Scope, rest: list[tuple[str, str]], *, cookie: tuple[str, str] | None = None
) -> Response:
    """Give the browser a cookie instead, so that the token is in no address, history or log."""
    # One slash at the beginning: two would lead to another host.
    path = "/" + scope["raw_path"].decode("latin-1").partition("?")[0].lstrip("/\\")
    answer = RedirectResponse(path + (f"?{urlencode(rest)}" if rest else ""), status_code=303)
    is_secure = scope["scheme"] == "https"
    if cookie is not None:
        name, text = cookie
        answer.set_cookie(
            name, quote(text, safe=""), httponly=True, samesite="strict", secure=is_secure, path="/"
        )
    return answer


def _cookie(headers: Headers, name: str) -> str:
    # Not by http.cookies, which takes a second for what a stranger can send in one header.
    pairs = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
    return next((unquote(value) for known, _, value in pairs if known == name), "")


def read_token(path: Path | None) -> str:
    """The token in the first line of a file; without a file a new one that cannot be guessed."""
    if path is None:
        return secrets.token_urlsafe(24)
    lines = read_secret_file(path).splitlines()
    token = lines[0].strip() if lines else ""
    if len(token) < LEAST_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise TandemError(
            f"The first line of {path} is no token: write at least {LEAST_CHARACTERS} "
            "letters, digits and marks without spaces."
        )
    return token
