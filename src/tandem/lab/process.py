"""Processes of a lab: which there are, and signals to those and no others."""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tandem.errors import TandemError
from tandem.lab.state import Started

__all__ = ["end", "end_all", "identify", "is_alive", "processes_in", "read_boot", "signal_all"]

_PROC = Path("/proc")
_NAMESPACES = Path("/run/netns")
_PATIENCE_S = 10.0


def read_boot() -> str:
    """What tells this start of the machine from others."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Started:
    """The process with its start time; ProcessLookupError where there is none."""
    try:
        # The name before it, in brackets, may hold spaces and brackets.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    if fields[0] in {"Z", "X"}:
        raise ProcessLookupError(pid)
    return Started(pid=pid, ticks=int(fields[19]))


def is_alive(process: Started) -> bool:
    """Whether that very process still runs."""
    with suppress(ProcessLookupError):
        return identify(process.pid) == process
    return False


def end(process: Started) -> None:
    """Kill a process, unless its number belongs to another one by now, and wait until it is gone."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            # The descriptor holds on to one process: what is checked now is what is killed.
            if is_alive(process):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                _await_end(descriptor, process.pid)
        finally:
            os.close(descriptor)


def processes_in(namespace: str) -> list[Started]:
    """Every process in a network namespace."""
    return list(_find(namespace))


def signal_all(namespace: str, number: signal.Signals) -> None:
    """Send a signal to every process in a network namespace, also to those that it starts meanwhile."""
    seen: set[Started] = set()
    while new := set(_find(namespace)) - seen:
        for process in new:
            _send(process, number)
        seen |= new


def end_all(namespace: str) -> None:
    """Kill every process in a network namespace, and wait until they are gone."""
    deadline = time.monotonic() + _PATIENCE_S
    while found := processes_in(namespace):
        for process in found:
            end(process)
        if time.monotonic() > deadline:
            raise TandemError(f"Processes start in {namespace} faster than they can be stopped: stop them.")


def _find(namespace: str) -> Iterator[Started]:
    try:
        wanted = (_NAMESPACES / namespace).stat()
    except FileNotFoundError:
        return
    for folder in _PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError):
            process = identify(int(folder.name))
            if os.path.samestat((folder / "ns/net").stat(), wanted):
                yield process


def _send(process: Started, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if is_alive(process):
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _await_end(descriptor: int, pid: int) -> None:
    ready, _, _ = select.select([descriptor], [], [], _PATIENCE_S)
    if not ready:
        raise TandemError(f"Process {pid} of the lab does not end: see what it waits for, then try again.")
