"""Which runs are shown: those that were named, and those that lie in a folder that was named."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tandem.errors import TandemError
from tandem.observe.listing import find_runs
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
            # A folder that is gone may come back.
            with suppress(TandemError, OSError):
                yield from (run.resolve() for run in find_runs(place) if _is_within(run, place))

    def _key(self, run: Path) -> str:
        if run not in self._keys:
            name = UNSAFE.sub("_", run.name).strip(".") or "run"
            taken = set(self._keys.values())
            numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
            self._keys[run] = next(key for key in numbered if key not in taken)
        return self._keys[run]


def _is_within(run: Path, place: Path) -> bool:
    """Whether it has a log, which no link leads out of the place that was named."""
    log = RunLayout(run).log
    return log.is_dir() and log.resolve().is_relative_to(place)
