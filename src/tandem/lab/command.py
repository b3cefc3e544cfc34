"""The programs that a lab is built with, and running them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

from tandem.errors import TandemError

__all__ = ["attempt", "check_fitness", "perform", "program"]

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
}


def check_fitness() -> None:
    """Say in one sentence why no lab can be made here, if none can."""
    if sys.platform != "linux":
        raise TandemError("A lab is made of Linux network namespaces: use a Linux machine.")
    if os.environ.get("TANDEM_LAB_HOST"):
        raise TandemError("This is a host of a lab: leave it, and say that on the machine itself.")
    if os.geteuid() != 0:
        raise TandemError("A lab makes network namespaces, which only root may: run it with sudo.")
    for name in _PACKAGES:
        program(name)


@cache
def program(name: str) -> str:
    """The path of a program; TandemError names the package that has it."""
    # A user's path often lacks the folders of root.
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise TandemError(f"A lab needs {name}: install it (Debian: apt-get install {_PACKAGES[name]}).")
    return found


def perform(words: Sequence[str]) -> str:
    """Run a program of the list and give what it printed; TandemError if it fails."""
    result = _run(words)
    if result.returncode != 0:
        reason = " ".join(result.stderr.split()) or f"exit status {result.returncode}"
        raise TandemError(
            f"`{' '.join(words)}` failed ({reason}): a lab needs root's full rights "
            "over networks and mounts (in a container: --privileged)."
        )
    return result.stdout


def attempt(words: Sequence[str]) -> None:
    """Run a program of the list where it does not matter if there was nothing to do."""
    _run(words)


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [program(words[0]), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
