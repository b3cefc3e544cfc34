"""Who may translate: keys from a file, compared in constant time."""

from collections.abc import Collection
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from tandem.errors import TandemError
from tandem.serve.refusal import Refusal

__all__ = ["ApiKeys", "read_keys"]

LEAST_CHARACTERS = 8


class ApiKeys:
    """The keys that open the server; without any it is open to all."""

    def __init__(self, keys: Collection[str] = ()) -> None:
        self._digests = [_digest(key) for key in keys]

    @property
    def are_needed(self) -> bool:
        """Whether a request must bring a key."""
        return bool(self._digests)

    def check(self, authorization: str | None, given: str | None) -> None:
        """Refuse a request that brings no right key, in its header or in its body."""
        if not self._digests:
            return
        kind, _, token = (authorization or "").partition(" ")
        key = token.strip() if kind.lower() == "bearer" else given
        if not key:
            raise Refusal(
                401,
                "An API key is needed: send it as Authorization: Bearer KEY, or as api_key.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        digest = _digest(key)
        # All are compared, so that the time says nothing.
        if not sum(compare_digest(digest, known) for known in self._digests):
            raise Refusal(403, "This API key is not one of this server's.")


def read_keys(path: Path) -> ApiKeys:
    """The keys in a file, one a line; lines that begin with # are comments."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TandemError(f"{path} is not UTF-8: write one API key a line.") from error
    lines = enumerate(map(str.strip, text.splitlines()), start=1)
    keys = {number: line for number, line in lines if line and not line.startswith("#")}
    if not keys:
        raise TandemError(f"{path} holds no API key: write one a line.")
    for number, key in keys.items():
        if len(key) < LEAST_CHARACTERS:
            raise TandemError(
                f"The API key in line {number} of {path} is short enough to be guessed: "
                f"take at least {LEAST_CHARACTERS} characters."
            )
    return ApiKeys(keys.values())


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
