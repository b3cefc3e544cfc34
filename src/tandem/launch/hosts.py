"""Which hosts to train on, as people write them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tandem.errors import TandemError

__all__ = ["Host", "read_hosts"]

_NAME = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?(?:[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\])"
)
_ENTRY = re.compile(
    rf"(?P<name>{_NAME.pattern})(?::(?P<workers>\d{{1,4}})|\s+slots\s*=\s*(?P<slots>\d{{1,4}}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine that ssh reaches."""

    name: str
    """What ssh is given: a name of its settings, of the network, or an address; also user@name."""
    workers: int = 0
    """Processes there; 0 means all its GPUs, or one where it has none."""


def read_hosts(text: str) -> tuple[Host, ...]:
    """From "a,b", "a:2,user@b:2", or a file with a host a line, as "a:2" or "a slots=2"."""
    file = Path(text)
    if "," not in text and file.is_file():
        lines = enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        entries = [(f"{file}, line {number}", line.partition("#")[0].strip()) for number, line in lines]
    else:
        entries = [("--hosts", entry.strip()) for entry in text.split(",")]
    hosts = tuple(_read(entry, where=where) for where, entry in entries if entry)
    if not hosts:
        raise TandemError(
            f"{text!r} names no host: write --hosts a:2,b:2, or name a file with a host a line."
        )
    names = [host.name for host in hosts]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TandemError(
            f"{twice[0]} is named twice in {text}: name it once, as {twice[0]}:2 for two workers."
        )
    return hosts


def _read(entry: str, *, where: str) -> Host:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise TandemError(f"{where}: {entry!r} is no host: write name, name:2 or user@name:2.")
    workers = found["workers"] or found["slots"]
    if workers is not None and int(workers) == 0:
        raise TandemError(f"{where}: {entry!r} asks for no worker: leave the host out, or give it one.")
    return Host(name=found["name"].replace("[", "").replace("]", ""), workers=int(workers or 0))
