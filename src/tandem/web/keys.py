"""Keys and tokens: read from a file that only its owner reads, compared in constant time, and guessed slowly."""

import errno
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from hashlib import sha256
from hmac import compare_digest
from math import ceil
from pathlib import Path

from tandem.errors import TandemError
from tandem.web.clients import client_network
from tandem.web.refusal import Refusal

__all__ = ["Keys", "Patience", "bearer", "read_secret_file"]

MOST_FILE_BYTES = 2**20
FORGIVEN = 5
"""Wrong keys of a client that cost it nothing."""
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
FORGOTTEN_S = 600.0
MOST_CLIENTS = 4_096


class Patience:
    """How long a client must wait after wrong keys: longer each time, and nobody else with it."""

    def __init__(self, *, forgiven: int = FORGIVEN, clock: Callable[[], float] = time.monotonic) -> None:
        self._forgiven, self._clock = forgiven, clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """Of each network that a client has for itself: wrong keys, and when the last one came; the oldest first."""

    def wait_s(self, client: str) -> float:
        """Until the next key of this client is looked at."""
        count, last = self._wrong.get(client_network(client), (0, 0.0))
        if count <= self._forgiven:
            return 0.0
        # No larger power than needed: the longest wait is soon reached.
        wait = min(FIRST_WAIT_S * 2.0 ** min(count - self._forgiven - 1, 30), LONGEST_WAIT_S)
        return max(last + wait - self._clock(), 0.0)

    def count(self, client: str) -> None:
        """A wrong key came; beyond so many clients, the one whose last is longest ago is forgotten."""
        network, now = client_network(client), self._clock()
        before, last = self._wrong.pop(network, (0, now))
        self._wrong[network] = (1 if now - last > FORGOTTEN_S else before + 1), now
        if len(self._wrong) > MOST_CLIENTS:
            self._wrong.popitem(last=False)


class Keys:
    """What opens a server; only digests are kept."""

    def __init__(self, texts: Collection[str], *, name: str, patience: Patience | None = None) -> None:
        """`name` is what they are called: API key, token."""
        self._digests = [_digest(text) for text in texts]
        self._name, self._patience = name, patience or Patience()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._digests)

    def fits(self, text: str) -> bool:
        """Whether it is one of them, in a time that says nothing: all are compared."""
        digest = _digest(text)
        return bool(sum(compare_digest(digest, known) for known in self._digests))

    def check(self, text: str, client: str) -> Refusal | None:
        """Why a key that a client gives is refused, if it is."""
        if wait := self._patience.wait_s(client):
            # Right ones too: an answer that tells them from wrong ones would let guessing go on.
            seconds = ceil(wait)
            sentence = f"Too many wrong {self._name}s came from here: try again in {seconds} s."
            return Refusal(429, sentence, headers={"Retry-After": str(seconds)})
        if self.fits(text):
            return None
        self._patience.count(client)
        return Refusal(403, f"This {self._name} is not one of this server's.")


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def bearer(authorization: str | None) -> str:
    """The key of an Authorization header; empty where it holds none."""
    kind, _, text = (authorization or "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


def read_secret_file(path: Path) -> str:
    """The text of a file that others cannot read, nor put another in its place by a link."""
    # Not blocking: opening a pipe would wait for somebody who writes.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise TandemError(f"{path} is a link, and anyone may turn it: name the file itself.") from error
    try:
        _check_file(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MOST_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MOST_FILE_BYTES:
        raise TandemError(
            f"{path} is longer than {MOST_FILE_BYTES:,} bytes: name the file with what is secret."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TandemError(f"{path} is not UTF-8: write it anew, one line each.") from error


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TandemError(f"{path} is not a file: write what is secret into one.")
    user = os.geteuid()
    if found.st_uid not in {user, 0}:
        raise TandemError(f"{path} belongs to another user, who knows what is in it: write one of your own.")
    # What root gives to a service, as Kubernetes does, is read through the group.
    others = stat.S_IRWXO if found.st_uid == 0 != user else stat.S_IRWXO | stat.S_IRWXG
    if found.st_mode & others:
        raise TandemError(f"Others can read or change {path}: make it yours alone with chmod 600 {path}.")
