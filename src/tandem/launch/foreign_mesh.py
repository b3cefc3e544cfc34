"""Where ranks of another launcher meet: out of other users' reach, and encrypted between hosts that share a folder.

Such a launcher has no channel that only its user can write to. A folder that all hosts see, and that nobody but the
user can enter, does as well: each host's end of the mesh leaves its certificate there.
"""

import argparse
import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.files import read_json
from tandem.launch.first import local_path, start_name
from tandem.launch.identity import fingerprint_of
from tandem.launch.mesh import Mesh, Peer
from tandem.launch.worker import end_with_parent
from tandem.lock import BusyError, holding
from tandem.parallel.key_values import MESH, STORE
from tandem.parallel.route import address_of, interface_towards, is_wireguard
from tandem.process import python_command

__all__ = ["exchange", "main", "meeting", "meeting_environment", "warn_of_network"]

_MODULE = "tandem.launch.foreign_mesh"
_PATIENCE_S = 600.0
"""How long hosts that prepare their text may take to come."""
_LOOK_S = 0.1
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_READY = "ready"


def meeting_environment(environment: Mapping[str, str], key_folder: Path | None) -> dict[str, str]:
    """What tells a rank where to meet the others; empty where they meet at MASTER_ADDR."""
    if _size(environment) == 1:
        return {}
    local = local_path(environment)
    if _is_one_host(environment):
        return {STORE: f"{local}.store"}
    return {} if key_folder is None else {MESH: f"{local}.mesh"}


@contextmanager
def meeting(environment: Mapping[str, str], key_folder: Path | None) -> Iterator[None]:
    """Keep the ranks' meeting open inside the block, which the first rank of each host enters before the others go on.

    Waits for the other hosts where the folder is given. Raises TandemError where it may not be used, or they do not
    come.
    """
    places = meeting_environment(environment, key_folder)
    with ExitStack() as stack:
        for name, path in places.items():
            stack.enter_context(_claimed(Path(path)))
            if name == MESH and key_folder is not None:
                stack.enter_context(_mesh_process(environment, key_folder, Path(path)))
        yield


@contextmanager
def _claimed(path: Path) -> Iterator[None]:
    """A name for this start alone, under which nothing is left."""
    try:
        with holding(path):
            # One that was killed has left it.
            path.unlink(missing_ok=True)
            yield
            path.unlink(missing_ok=True)
    except BusyError:
        raise TandemError(
            "Another run meets at the same address and port: give this one another MASTER_PORT."
        ) from None


def warn_of_network(environment: Mapping[str, str], key_folder: Path | None, *, is_trusted: bool) -> str:
    """A sentence that says what is open, and to whom; empty where nothing is, or where the user knows."""
    if is_trusted or _size(environment) == 1:
        return ""
    sentences = []
    nic = _interface(environment)
    if not _is_one_host(environment) and key_folder is None and not (nic and is_wireguard(nic)):
        sentences.append(
            f"Between hosts nothing is encrypted: whoever reaches {nic or 'the network'} of one of them can read and "
            "change what the ranks exchange. Give --key-folder FOLDER, one that all hosts share."
        )
    if "TORCHELASTIC_RUN_ID" in environment:
        sentences.append(
            f"torchrun itself listens on every interface, at port {environment.get('MASTER_PORT', '')} and others, and "
            "trusts whoever connects: use it where nobody else can reach this host, or tandem train without it."
        )
    if sentences:
        sentences.append("With --network trusted this is not said.")
    return " ".join(sentences)


def _size(environment: Mapping[str, str]) -> int:
    return int(environment.get("WORLD_SIZE", "1"))


def _is_one_host(environment: Mapping[str, str]) -> bool:
    return environment.get("LOCAL_WORLD_SIZE") == environment.get("WORLD_SIZE")


def _interface(environment: Mapping[str, str]) -> str | None:
    named = environment.get("GLOO_SOCKET_IFNAME", "").partition(",")[0]
    return named or interface_towards(environment.get("MASTER_ADDR", ""))


# --- this host's end of the mesh, in a process of its own: bytes would wait for a rank's interpreter ---


@contextmanager
def _mesh_process(environment: Mapping[str, str], key_folder: Path, path: Path) -> Iterator[None]:
    nic = _interface(environment)
    address = None if nic is None else address_of(nic)
    if address is None:
        raise TandemError(
            "This host has no address towards rank 0's: set GLOO_SOCKET_IFNAME to an interface."
        )
    numbers = [environment["RANK"], environment.get("LOCAL_WORLD_SIZE", "1"), environment["WORLD_SIZE"]]
    words = [str(key_folder), start_name(environment), address, str(path), *numbers, str(os.getpid())]
    # A session of its own: signals that ask ranks to save are not for it.
    with subprocess.Popen(  # noqa: S603 - our own module, and no shell
        python_command(_MODULE, *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answer = process.stdout.readline().strip()
        try:
            if answer != _READY:
                raise TandemError(answer or "This host's end of the mesh has ended: look at what it printed.")
            yield
        finally:
            process.stdin.close()


def main() -> None:
    """Be one host's end of the mesh until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tandem.launch.foreign_mesh", description=main.__doc__)
    parser.add_argument("key_folder", type=Path)
    for name in ("start", "address"):
        parser.add_argument(name)
    parser.add_argument("socket", type=Path)
    for name in ("first_rank", "ranks", "world_size", "parent"):
        parser.add_argument(name, type=int)
    words = parser.parse_args()
    end_with_parent(words.parent)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    try:
        _serve(words)
    except (TandemError, OSError) as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(1)


def _serve(words: argparse.Namespace) -> None:
    mesh = Mesh(name=socket.gethostname(), address=words.address, socket_path=words.socket)
    own = Peer(
        name=socket.gethostname(),
        address=words.address,
        port=mesh.port,
        certificate=mesh.certificate,
        first_rank=words.first_rank,
        ranks=words.ranks,
    )
    with exchange(words.key_folder, words.start, own, world_size=words.world_size) as peers:
        digest = hashlib.sha256("".join(peer.certificate for peer in peers).encode()).digest()
        described = [asdict(peer) for peer in peers]
        mesh.join({"peers": described, "own": peers.index(own), "network": digest[0] % 254 + 1})
        sys.stdout.write(f"{_READY}\n")
        sys.stdout.flush()
        sys.stdin.read()
    mesh.close()


# --- the exchange of certificates ---


@contextmanager
def exchange(
    folder: Path, start: str, own: Peer, *, world_size: int, patience_s: float = _PATIENCE_S
) -> Iterator[list[Peer]]:
    """Leave this host's certificate in the folder and give those of all hosts, in the order of their ranks.

    What an earlier start of this name has left there does not count: a host goes on when all the others have seen
    the very certificates that it sees.
    """
    with _entered(folder) as entered:
        files = [entered / f"{start}-{rank}.json" for rank in range(world_size)]
        try:
            yield _gather(files, own, patience_s=patience_s, shown=folder)
        finally:
            files[own.first_rank].unlink(missing_ok=True)


@contextmanager
def _entered(folder: Path) -> Iterator[Path]:
    """The folder by a name that nobody can turn elsewhere, if it is this user's alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise TandemError(f"Cannot use {folder} for keys: {error.strerror}; give another folder.") from error
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            raise TandemError(
                f"Others can enter {folder}, where keys are exchanged: make it yours with mode 0700."
            )
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _gather(files: Sequence[Path], own: Peer, *, patience_s: float, shown: Path) -> list[Peer]:
    seen: list[str] = []
    end_s = time.monotonic() + patience_s
    _write(files[own.first_rank], own, seen)
    while True:
        cards = _chain(files)
        peers = [peer for peer, _ in cards]
        prints = [fingerprint_of(peer.certificate) for peer in peers]
        if own in peers and sum(peer.ranks for peer in peers) == len(files):
            if prints != seen:
                seen = prints
                _write(files[own.first_rank], own, seen)
            if all(theirs == prints for peer, theirs in cards if peer != own):
                return peers
        if time.monotonic() > end_s:
            names = ", ".join(peer.name for peer in peers) or "none"
            raise TandemError(
                f"Not all hosts have left a key in {shown} within {patience_s:.0f} s, in the order of ranks these "
                f"({names}): all must see this folder, and a host's ranks have numbers that follow each other."
            )
        time.sleep(_LOOK_S)


def _write(file: Path, own: Peer, seen: Sequence[str]) -> None:
    write_atomic(file, json.dumps({"peer": asdict(own), "seen": seen}).encode())


def _chain(files: Sequence[Path]) -> list[tuple[Peer, Any]]:
    """The hosts whose ranks follow each other from rank 0 on, as far as they are there, and what they have seen."""
    cards: list[tuple[Peer, Any]] = []
    rank = 0
    while rank < len(files):
        try:
            card = read_json(files[rank])
            peer = Peer(**card["peer"])
        except (OSError, ValueError, TypeError, KeyError):
            break
        cards.append((peer, card["seen"]))
        rank += max(1, peer.ranks)
    return cards


if __name__ == "__main__":
    main()
