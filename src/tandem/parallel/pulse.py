"""A rank's pulse: a small file in memory that says what the rank does, for whoever watches over it on its host."""

# No torch here: those who watch read pulses, and need nothing else.

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

__all__ = ["PULSE", "NullPulse", "Pulse", "PulseState", "PulseWriter", "open_pulse", "read_pulse"]

PULSE = "TANDEM_PULSE"
"""Environment: the file of this rank's pulse."""

VERSION = 1

# Version, waiting or not, sequence; step, begun, done; last change, seconds waited; collective; sequence again.
_FORM = struct.Struct("<BB6xQQQQdd32sQ")
_NAME_BYTES = 32
_FRONT, _END = slice(8, 16), slice(_FORM.size - 8, _FORM.size)
"""Where the sequence stands."""
_TRIES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseState:
    """What a rank does."""

    step: int
    """The step at hand, from 1; 0 before the first one of this process."""
    begun: int
    """Collectives that it has begun."""
    done: int
    """Collectives whose end it has waited for."""
    is_waiting: bool
    """Whether it is inside a collective now, and other ranks may be what it waits for."""
    changed_s: float
    """When it last gave a sign of life, on the host's monotonic clock."""
    waited_s: float
    """Seconds spent inside collectives so far, less the one at hand."""
    collective: str
    """The one that was begun or waited for last; empty where there was none."""


class Block(Protocol):
    """Something to be inside of."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Pulse(Protocol):
    """Where a rank shows that it lives."""

    def beat(self, step: int | None = None) -> None:
        """Give a sign of life, and say which step is made from now on."""
        ...

    def begin(self, name: str) -> None:
        """Say that a collective was started which `waiting` will wait for."""
        ...

    def waiting(self, name: str) -> Block:
        """Around the wait for a collective that was begun before."""
        ...

    def collective(self, name: str) -> Block:
        """Around a collective that is begun and waited for in one go."""
        ...


class _Nothing:
    """The block of a rank that nobody watches."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


_NOTHING = _Nothing()


class NullPulse:
    """A pulse that nobody feels."""

    def beat(self, step: int | None = None) -> None:
        """Ignore."""

    def begin(self, name: str) -> None:
        """Ignore."""

    def waiting(self, name: str) -> Block:  # noqa: ARG002  (the interface's)
        """Around anything."""
        return _NOTHING

    def collective(self, name: str) -> Block:  # noqa: ARG002  (the interface's)
        """Around anything."""
        return _NOTHING


class PulseWriter:
    """Writes a pulse into a mapped file, which costs no system call; for one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Begin anew; OSError where there is no place for the file."""
        with path.open("wb+") as file:
            # Not as a hole: where there is no room for it, the first write through the map would kill the process.
            os.posix_fallocate(file.fileno(), 0, _FORM.size)
            self._map = mmap.mmap(file.fileno(), _FORM.size)
        self._sequence = self._step = self._begun = self._done = 0
        self._waited_s = 0.0
        self._name = b""
        self._block = _Wait(self)
        self.write(time.monotonic())

    def beat(self, step: int | None = None) -> None:
        """Give a sign of life, and say which step is made from now on."""
        if step is not None:
            self._step = step
        self.write(time.monotonic())

    def begin(self, name: str) -> None:
        """Say that a collective was started which `waiting` will wait for."""
        self._begun += 1
        self._name = name.encode()
        self.write(time.monotonic())

    def waiting(self, name: str) -> Block:
        """Around the wait for a collective that was begun before."""
        self._name = name.encode()
        return self._block

    def collective(self, name: str) -> Block:
        """Around a collective that is begun and waited for in one go."""
        self._begun += 1
        self._name = name.encode()
        return self._block

    def ended(self, *, since_s: float, now_s: float) -> None:
        """Count a wait that is over."""
        self._done += 1
        self._waited_s += now_s - since_s
        self.write(now_s)

    def write(self, now_s: float, *, is_waiting: bool = False) -> None:
        """Put all of it down; readers tell by the two sequence numbers whether they came between."""
        self._sequence += 1
        sequence, name = self._sequence, self._name[:_NAME_BYTES]
        counts = (self._step, self._begun, self._done)
        held = _FORM.pack(VERSION, is_waiting, sequence, *counts, now_s, self._waited_s, name, sequence)
        # One after the other: within one copy, as within `pack_into`, the end may be changed before the front.
        self._map[_FRONT] = held[_FRONT]
        self._map[: _END.start] = held[: _END.start]
        self._map[_END] = held[_END]


class _Wait:
    """The block in which a rank waits; there is one at a time, so one object serves all."""

    __slots__ = ("_pulse", "_since_s")

    def __init__(self, pulse: PulseWriter) -> None:
        self._pulse = pulse
        self._since_s = 0.0

    def __enter__(self) -> None:
        self._since_s = now_s = time.monotonic()
        self._pulse.write(now_s, is_waiting=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A collective that failed is not over: its name stays for whoever asks what went wrong.
        if kind is None:
            self._pulse.ended(since_s=self._since_s, now_s=time.monotonic())


def open_pulse() -> Pulse:
    """The pulse that the environment names; that of nobody where it names none, or one that cannot be written."""
    path = os.environ.get(PULSE)
    if not path:
        return NullPulse()
    try:
        return PulseWriter(Path(path))
    except OSError:
        return NullPulse()  # nothing that only watches may stop a run


def read_pulse(path: Path) -> PulseState | None:
    """What a rank does; None where it has not said anything yet, or in a form that is not known here."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _maybe_state(_read_whole(file))
    except OSError:
        return None
    finally:
        os.close(file)


def _read_whole(file: int) -> bytes:
    """The bytes of one write; none of a file that is not a pulse, or that was left in the midst of one."""
    for _ in range(_TRIES):
        # A write ends with the number at the end and begins with the one at the front: if these are the same before
        # and after the read, it came between no two writes.
        end = _read_number(file, _END)
        held = os.pread(file, _FORM.size + 1, 0)
        if end == _read_number(file, _FRONT):
            return held
    return b""


def _read_number(file: int, place: slice) -> bytes:
    return os.pread(file, place.stop - place.start, place.start)


def _maybe_state(held: bytes) -> PulseState | None:
    if len(held) != _FORM.size:
        return None
    version, waiting, sequence, step, begun, done, changed_s, waited_s, name, _ = _FORM.unpack(held)
    if version != VERSION or not sequence:
        return None
    return PulseState(
        step=step,
        begun=begun,
        done=done,
        is_waiting=bool(waiting),
        changed_s=changed_s,
        waited_s=waited_s,
        collective=name.rstrip(b"\0").decode(errors="ignore"),
    )
