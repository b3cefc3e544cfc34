"""What the workers print, line by line with the names of their hosts."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from tandem.observe.visible import visible
from tandem.runlog.layout import RunLayout, open_log
from tandem.runlog.record import Record

__all__ = ["PrintedSink"]

_MOST_BYTES = 1 << 16
_STARTED = re.compile(r"started [-\d]+ [:\d]+ on (\S+) as process \d+")


class PrintedSink:
    """Follows the files that keep the workers' output; what they had before it was opened is not told again."""

    def __init__(self, run: Path, console: Console) -> None:
        self._folder, self._console = RunLayout(run).log, console
        self._hosts: dict[Path, str] = {}
        self._places = {path: path.stat().st_size for path in self._paths()}
        self.failure = ""

    def apply(self, record: Record) -> None:
        """Take nothing: this reader has files of its own."""

    def flush(self) -> None:
        """Print what is new."""
        for path in self._paths():
            rank = int(path.stem.removeprefix("rank-"))
            for line in self._new_lines(path):
                if (started := _STARTED.fullmatch(line)) is not None:
                    self._hosts[path] = started[1]
                who = f"{self._hosts[path]}, rank {rank}" if path in self._hosts else f"rank {rank}"
                self._console.print(f"{who}: {visible(line)}", markup=False, highlight=False, soft_wrap=True)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("rank-[0-9]*.txt"))

    def _new_lines(self, path: Path) -> Iterator[str]:
        """Whole lines since the last time; of a flood only the newest, for the file keeps them all."""
        with suppress(OSError), open_log(path) as file:
            place, end = self._places.get(path, 0), file.seek(0, 2)
            place = place if place <= end else 0
            passed = max(0, end - place - _MOST_BYTES)
            file.seek(place + passed)
            text = file.read(_MOST_BYTES)
            whole = text[: text.rfind(b"\n") + 1]
            self._places[path] = place + passed + len(whole)
            if passed:
                yield f"(more than fits here: see {path.name})"
                whole = whole[whole.find(b"\n") + 1 :]
            yield from whole.decode(errors="replace").splitlines()
