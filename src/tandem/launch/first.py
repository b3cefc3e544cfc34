"""One rank of a host works for all of them, while the others wait for it."""

import hashlib
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tandem.errors import TandemError
from tandem.launch.local_socket import is_own_peer, private_folder, short_name
from tandem.lock import BusyError, holding

__all__ = ["first_of_host", "local_path", "start_name"]

PATIENCE_S = 600.0
"""How long the ranks of a host may take to start."""
LOOK_S = 0.1


@contextmanager
def first_of_host(environment: Mapping[str, str] = os.environ) -> Iterator[bool]:
    """Give True to the first rank of this host, and to the others False once its block has ended well.

    There is no limit on the block: its end, good or bad, is heard.
    """
    others = int(environment.get("LOCAL_WORLD_SIZE", "1")) - 1
    if others < 1:
        yield True
        return
    path = local_path(environment)
    if int(environment.get("LOCAL_RANK", "0")) == 0:
        with _listening(path, others) as door:
            yield True
            _tell(door, others)
    else:
        _wait(path)
        yield False


def local_path(environment: Mapping[str, str]) -> Path:
    """Where the ranks of this host find each other: containers may share the folder, but not the network."""
    network = ""
    with suppress(OSError):
        network = "-" + str(Path("/proc/self/ns/net").readlink()).strip("net:[]")
    return private_folder(environment) / (start_name(environment) + network)


def start_name(environment: Mapping[str, str]) -> str:
    """A name that is the same for all ranks of a start, and another for all other starts of this user's."""
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    meeting = "-".join(environment.get(name, "") for name in names)
    return "tandem-" + hashlib.sha256(meeting.encode()).hexdigest()[:32]


@contextmanager
def _listening(path: Path, others: int) -> Iterator[socket.socket]:
    with ExitStack() as stack:
        try:
            stack.enter_context(holding(path))
        except BusyError:
            raise TandemError(
                "Another run meets at the same address and port: give this one another MASTER_PORT."
            ) from None
        door = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        # One that was killed has left its file.
        path.unlink(missing_ok=True)
        with short_name(path) as name:
            door.bind(name)
        stack.callback(path.unlink, missing_ok=True)
        door.listen(others)
        yield door


def _tell(door: socket.socket, others: int) -> None:
    door.settimeout(PATIENCE_S)
    told = 0
    while told < others:
        try:
            caller, _ = door.accept()
        except TimeoutError:
            raise TandemError(
                f"Only {told + 1} of the {others + 1} ranks of {socket.gethostname()} have started: "
                "look at what the others say."
            ) from None
        with caller, suppress(OSError):
            if is_own_peer(caller):
                told += 1
                caller.send(b"!")


def _wait(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        deadline_s = time.monotonic() + PATIENCE_S
        while not _is_connected(line, path):
            if time.monotonic() > deadline_s:
                raise TandemError(f"The first rank of {socket.gethostname()} has not started: look why.")
            time.sleep(LOOK_S)
        with suppress(ConnectionError):
            if is_own_peer(line) and line.recv(1):
                return
    raise TandemError(f"The first rank of {socket.gethostname()} could not make the data ready: it says why.")


def _is_connected(line: socket.socket, path: Path) -> bool:
    try:
        with short_name(path) as name:
            line.connect(name)
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    return True
