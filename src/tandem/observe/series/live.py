"""The series of a run that goes on, kept up to date from what its logs have gained."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tandem.observe.series.assemble import Assembly
from tandem.observe.series.columns import Series
from tandem.observe.series.fold import find_logs, maybe_leader
from tandem.observe.series.part import PartReader
from tandem.observe.series.room import MEMORY, Room

__all__ = ["LiveSeries"]


class LiveSeries:
    """What was read of a run's logs so far; reading on costs what was gained, not what was there.

    `room` is where the columns lie.
    """

    def __init__(self, run: Path, *, room: Room = MEMORY) -> None:
        self._run, self._room = run, room
        self._assembly = Assembly(run, room=room)
        self._readers: dict[Path, PartReader] = {}
        self._leader: Path | None = None
        self._behind_bytes = 0
        self._is_part = False
        """Whether files were left for later of which nothing was read yet."""

    @property
    def offsets(self) -> Mapping[Path, int]:
        """Bytes that were read of each log file: whole lines only."""
        return {path: reader.offset for path, reader in self._readers.items()}

    @property
    def behind_bytes(self) -> int:
        """Bytes that the logs hold and that were not read yet, as of the last refresh."""
        return self._behind_bytes

    def refresh(self, *, at_most_bytes: int | None = None, leader_only: bool = False) -> int:
        """Read what the logs have gained, and not much more than is allowed; returns the bytes.

        The leader's log comes first, then those of what watches over the ranks, of samplers and of other ranks;
        `leader_only` stops after the first two. Raises TandemError where there is no log.
        """
        sizes = self._find_files()
        gained, self._is_part = 0, False
        for path in sorted(self._readers, key=self._place):
            left = None if at_most_bytes is None else at_most_bytes - gained
            if (left is None or left > 0) and not (leader_only and self._place(path)[0] > 1):
                gained += self._readers[path].read(at_most_bytes=left)
            else:
                self._is_part |= not self._readers[path].offset
        self._behind_bytes = sum(self._readers[path].behind_bytes(size) for path, size in sizes.items())
        return gained

    def series(self) -> Series:
        """All that was read, put together; the rows of ranks in it are good until the next call.

        While there are files of which nothing was read, ranks beyond the last one that was have no row.
        Raises TandemError where nothing was read because there is no log.
        """
        if not self._readers:
            find_logs(self._run)
        leader = self._leader.name if self._leader else ""
        parts = (each.part() for each in self._readers.values())
        return self._assembly.series(parts, leader=leader, is_part=self._is_part)

    def _find_files(self) -> dict[Path, int]:
        """The sizes of all files; those that are new get a reader, and those that are gone lose it."""
        paths = find_logs(self._run)
        self._leader = maybe_leader(paths)
        for path in set(self._readers) - set(paths):
            del self._readers[path]
        for path in paths:
            is_leader = path == self._leader
            # Of the leader more is kept, so that a file which becomes or ceases to be the leader's is read anew.
            if path not in self._readers or self._readers[path].is_leader != is_leader:
                self._readers[path] = PartReader(path, is_leader=is_leader, room=self._room)
        return dict(_sizes(paths))

    def _place(self, path: Path) -> tuple[int, str]:
        """What is read before what."""
        kinds = ("host-", "samples-")
        if path == self._leader:
            return 0, path.name
        return next((at for at, kind in enumerate(kinds, 1) if path.name.startswith(kind)), 3), path.name


def _sizes(paths: Iterable[Path]) -> Iterable[tuple[Path, int]]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield path, path.stat().st_size
