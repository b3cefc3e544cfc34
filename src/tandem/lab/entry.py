"""The argument lists of the small programs that act inside a lab."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from tandem.process import python_command

__all__ = ["connecting", "inside", "wiring"]


def inside(
    folder: Path, host: str, command: Sequence[str], *, cwd: Path, log: Path | None = None
) -> list[str]:
    """Run `command` in a host; with `log` in the background, printing the number of its process."""
    return [*_module("inside"), str(folder), host, str(cwd), str(log or ""), *command]


def wiring(namespace: str, ends: tuple[str, str], *, delay_s: float, log: Path) -> list[str]:
    """Lay a long cable from the host's end to the switch's, in the background, printing its process."""
    return [*_module("wire"), namespace, *ends, repr(delay_s), str(log)]


def connecting(namespace: str) -> str:
    """The value of ssh's ProxyCommand, to be used with ProxyUseFdpass."""
    words = [*_module("connect"), namespace]
    return " ".join(shlex.quote(word.replace("%", "%%")) for word in words) + " %h %p"


def _module(name: str) -> list[str]:
    return python_command(f"tandem.lab.{name}")
