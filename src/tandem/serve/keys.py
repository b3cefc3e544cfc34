"""Who may translate: API keys from a file."""

from collections.abc import Collection
from pathlib import Path

from tandem.errors import TandemError
from tandem.web.keys import Keys, Patience, bearer, read_secret_file
from tandem.web.refusal import Refusal

__all__ = ["ApiKeys", "read_keys"]

LEAST_CHARACTERS = 8


class ApiKeys:
    """The keys that open the server; without any it is open to all."""

    def __init__(self, keys: Collection[str] = (), *, patience: Patience | None = None) -> None:
        self._keys = Keys(keys, name="API key", patience=patience)

    @property
    def are_needed(self) -> bool:
        """Whether a request must bring a key."""
        return bool(self._keys)

    def check_header(self, authorization: str | None, client: str) -> bool:
        """Refuse a wrong key in the header, before the body is read; whether one was there."""
        key = bearer(authorization)
        if self._keys and key:
            self._check(key, client)
        return bool(key)

    def check_field(self, given: str | None, client: str) -> None:
        """Refuse a request that brings no right key in its body, and none in its header."""
        if not self._keys:
            return
        if not given:
            raise Refusal(
                401,
                "An API key is needed: send it as Authorization: Bearer KEY, or as api_key.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self._check(given, client)

    def _check(self, key: str, client: str) -> None:
        if refusal := self._keys.check(key, client):
            raise refusal


def read_keys(path: Path) -> ApiKeys:
    """The keys in a file, one a line; lines that begin with # are comments."""
    lines = enumerate(map(str.strip, read_secret_file(path).splitlines()), start=1)
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
