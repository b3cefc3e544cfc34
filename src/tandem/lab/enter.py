"""Moving this process into a host of a lab: its network, its name, its view of the disk."""

import ctypes
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["detach", "join_network", "take_identity"]

_NEW_MOUNTS, _NEW_NAME, _NEW_NETWORK = 0x00020000, 0x04000000, 0x40000000
_BIND, _RECURSIVE, _SLAVE = 0x1000, 0x4000, 0x80000
_NAMESPACES = Path("/run/netns")
_libc = ctypes.CDLL(None, use_errno=True)


def join_network(namespace: str) -> None:
    """Use that network namespace from now on."""
    descriptor = os.open(_NAMESPACES / namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(descriptor, _NEW_NETWORK), namespace)
    finally:
        os.close(descriptor)


def take_identity(name: str, covers: Mapping[Path, Path]) -> None:
    """Have a hostname of its own, /sys and /run of its own, and files in place of others (place → file)."""
    _check(_libc.unshare(_NEW_MOUNTS | _NEW_NAME), "unshare")
    # What is mounted here must not be seen outside, where nobody would remove it.
    _mount(None, "/", flags=_RECURSIVE | _SLAVE)
    socket.sethostname(name)
    for place, file in covers.items():
        _mount(str(file), str(place), flags=_BIND)
    # A sysfs shows the devices of the network that it was mounted in.
    _mount("sysfs", "/sys", kind="sysfs")
    _mount("tmpfs", "/run", kind="tmpfs")
    Path("/run/sshd").mkdir(mode=0o755)


def detach(log: Path) -> None:
    """Go on as a process in the background that writes into `log`; the caller's one prints its number and ends."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.write(1, f"{child}\n".encode())
        os._exit(0)
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)


def _mount(source: str | None, target: str, *, kind: str | None = None, flags: int = 0) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    _check(_libc.mount(*words, ctypes.c_ulong(flags), None), target)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
