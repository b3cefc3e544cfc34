"""One rank of a host works for all of them, while the others wait for it."""

import hashlib
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from tandem.errors import TandemError

__all__ = ["first_of_host"]

PATIENCE_S = 600.0
"""How long the ranks of a host may take to start."""
LOOK_S = 0.1


@contextmanager
def first_of_host(environment: Mapping[str, str] = os.environ) -> Iterator[bool]:
    """Give True to the first rank of this host, and to the others False once its block has ended well.

    There is no limit on the block: its end, good or bad, is heard.
    """
    others = int(environment.get("LOCAL_WORLD_SIZE", "1")) - 1
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    place = "-".join([str(os.getuid()), *(environment.get(each, "") for each in names)])
    # A name of the system's has 107 letters at most, and an address may be longer.
    name = "\0tandem-" + hashlib.sha256(place.encode()).hexdigest()
    if others < 1:
        yield True
    elif int(environment.get("LOCAL_RANK", "0")) == 0:
        with _listening(name, others) as door:
            yield True
            _tell(door, others)
    else:
        _wait(name)
        yield False


def _listening(name: str, others: int) -> socket.socket:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.bind(name)
    except OSError:
        door.close()
        raise TandemError(
            "Another run meets at the same address and port: give this one another MASTER_PORT."
        ) from None
    door.listen(others)
    return door


def _tell(door: socket.socket, others: int) -> None:
    door.settimeout(PATIENCE_S)
    for told in range(others):
        try:
            caller, _ = door.accept()
        except TimeoutError:
            raise TandemError(
                f"Only {told + 1} of the {others + 1} ranks of {socket.gethostname()} have started: "
                "look at what the others say."
            ) from None
        with caller, suppress(OSError):
            caller.send(b"!")


def _wait(name: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        deadline_s = time.monotonic() + PATIENCE_S
        while not _is_connected(line, name):
            if time.monotonic() > deadline_s:
                raise TandemError(f"The first rank of {socket.gethostname()} has not started: look why.")
            time.sleep(LOOK_S)
        with suppress(ConnectionError):
            if line.recv(1):
                return
    raise TandemError(f"The first rank of {socket.gethostname()} could not make the data ready: it says why.")


def _is_connected(line: socket.socket, name: str) -> bool:
    try:
        line.connect(name)
    except ConnectionRefusedError:
        return False
    return True
