"""Writes the logs of a simulated run, record by record, as the makers of a real one would."""

from collections.abc import Callable
from pathlib import Path

from tandem.runlog.event import Event
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

__all__ = ["BEGUN_NS", "Journal"]

BEGUN_NS = 1_767_225_600_000_000_000
_NANO = 1_000_000_000
_CLOCK_S = 5_000.0


class Journal:
    """The log folder of one run; times are seconds since it began, by the first host's clock."""

    def __init__(self, run: Path, *, offset_s: Callable[[str], float]) -> None:
        self._layout = RunLayout(run)
        self._layout.log.mkdir(parents=True)
        self._offset_s = offset_s
        self._lines: dict[Path, list[bytes]] = {}

    def rank(self, rank: int, event: Event, *, at_s: float, host: str) -> None:
        """Write what a rank did, by the clock of its host."""
        self._write(self._layout.rank_log(rank), event, at_s=at_s, host=host, rank=rank)

    def host(self, host: str, event: Event, *, at_s: float) -> None:
        """Write what whoever watches over a host's ranks saw."""
        self._write(self._layout.host_log(host), event, at_s=at_s, host=host, rank=None)

    def sample(self, host: str, event: Event, *, at_s: float) -> None:
        """Write what a host's sampler saw."""
        self._write(self._layout.samples_log(host), event, at_s=at_s, host=host, rank=None)

    def close(self) -> None:
        """Put all on the disk."""
        for path, lines in self._lines.items():
            path.write_bytes(b"".join(lines))

    def _write(self, path: Path, event: Event, *, at_s: float, host: str, rank: int | None) -> None:
        lines = self._lines.setdefault(path, [])
        record = Record(
            time_ns=BEGUN_NS + int((at_s + self._offset_s(host)) * _NANO),
            clock_s=round(_CLOCK_S + at_s, 6),
            rank=rank,
            host=None if rank is not None else host,
            sequence=len(lines),
            event=event,
        )
        lines.append(to_line(record))
