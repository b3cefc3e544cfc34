"""Commands on other hosts: how they are started over ssh, and what a failure to do so means."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.errors import TandemError
from tandem.process import python_command

__all__ = ["Ssh"]

CONNECT_S = 10
"""How long ssh may take to reach a host."""
_LOST = 255
_NOT_FOUND = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    """How the hosts are reached."""

    config: Path | None = None
    """Settings in place of the person's own, for `ssh -F`."""
    python: str = sys.executable
    """The Python of Tandem there: the same place as here unless told."""

    def command(self, host: str, words: Sequence[str]) -> list[str]:
        """The argument list that runs a command on a host; nothing is asked, since nobody may be there to answer."""
        program = shutil.which("ssh")
        if program is None:
            raise TandemError("There is no ssh on this machine: install it (Debian: openssh-client).")
        config = [] if self.config is None else ["-F", str(self.config)]
        options = [
            "BatchMode=yes",
            f"ConnectTimeout={CONNECT_S}",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=6",
            # A connection of its own: a shared one outlives its command, and is as alive as its first user.
            "ControlMaster=no",
            "ControlPath=none",
            # Nobody watches this connection, and its host may not be trusted with more than the run.
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "ForwardX11Trusted=no",
            "PermitLocalCommand=no",
            "Tunnel=no",
        ]
        given = [word for option in options for word in ("-o", option)]
        # What ssh is given is read by a shell on the other side: each word is quoted for it.
        return [program, "-T", *config, *given, "--", host, shlex.join(words)]

    def module(self, host: str, module: str, *arguments: str) -> list[str]:
        """The argument list that runs a module of Tandem on a host."""
        return self.command(host, python_command(module, *arguments, python=self.python))

    def explain(self, host: str, code: int, said: str) -> str:
        """One sentence for a command that did not start, or broke off: its exit code and what it wrote to stderr."""
        lines = [line for line in said.strip().splitlines() if line.strip()]
        last = lines[-1].strip() if lines else "no reason given"
        if code == _LOST:
            return f"Cannot reach {host} over ssh ({last}): make `ssh {host} true` work without a question."
        if code in _NOT_FOUND:
            return f"{host} has no {self.python}: install Tandem there in the same place, or give --python."
        if "No module named" in last:
            return (
                f"{self.python} on {host} has no Tandem ({last}): install it there, the same version as here."
            )
        return f"Tandem on {host} ended with exit code {code} ({last}): look there."
