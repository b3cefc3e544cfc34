"""Which runs are shown: those that were named, and those that lie in a folder that was named."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout

__all__ = ["Roster"]

MOST_RUNS = 1_000
UNSAFE = re.compile(r"[^\w.@+=-]+")


class Roster:
    """Gives each run a key that it keeps, however many come later."""

    def __init__(self, places: Sequence[Path]) -> None:
        """Each place is a run, or a folder of runs; raises TandemError where there is no such folder."""
        for place in places:
            if not place.is_dir():
                raise TandemError(f"There is no folder {place}: name a run, or a folder of runs.")
        self._places = [place.resolve() for place in places]
        self._keys: dict[Path, str] = {}

    def look(self) -> dict[str, Path]:
        """The runs that there are now, by key; one that is gone keeps its key, and is not among them."""
        found: dict[str, Path] = {}
        for run in self._runs():
            if len(found) < MOST_RUNS:
                found[self._key(run)] = run
        return found

    def _runs(self) -> Iterator[Path]:
        for place in self._places:
            if RunLayout(place).log.is_dir():
                yield place
            else:
                yield from _runs_in(place)

    def _key(self, run: Path) -> str:
        if run not in self._keys:
            name = UNSAFE.sub("_", run.name).strip(".") or "run"
            taken = set(self._keys.values())
            numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
            self._keys[run] = next(key for key in numbered if key not in taken)
        return self._keys[run]


def _runs_in(folder: Path) -> Iterator[Path]:
    """The runs of a folder by name; a link that leads out of it is not followed."""
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return
    for each in inside:
        try:
            log = RunLayout(each).log
            is_here = log.is_dir() and log.resolve().is_relative_to(folder)
        except OSError:
            continue
        if is_here:
            yield each.resolve()
