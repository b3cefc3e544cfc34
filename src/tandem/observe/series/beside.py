"""What lies beside a run's log: its recipe, and the card of its data."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tandem.artefact import JsonValue
from tandem.config.document import read_values
from tandem.errors import TandemError
from tandem.runlog.card import DataCard, read_card

__all__ = ["Beside"]


class Beside:
    """Reads files again only when they are others than they were."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._recipe: tuple[object, Mapping[str, object]] = (None, {})
        self._logged: Mapping[str, JsonValue] | None = None
        self._card: tuple[object, DataCard | None] = (None, None)

    def recipe(self) -> Mapping[str, object]:
        """The resolved recipe; empty where there is none that can be read."""
        path = self._run / "recipe.yaml"
        stamp = _stamp(path)
        if stamp != self._recipe[0]:
            self._recipe = (stamp, _recipe_values(path))
        return self._recipe[1]

    def card(self, logged: Mapping[str, JsonValue] | None) -> DataCard | None:
        """The card as the log has it; else that of the folder with the data, if it is still there."""
        data = self.recipe().get("data")
        folder = data.get("folder") if isinstance(data, dict) else None
        places = [self._run / str(folder or "data") / "card.json", self._run / "data" / "card.json"]
        stamps = [_stamp(path) for path in places]
        if logged is not self._logged or stamps != self._card[0]:
            self._logged = logged
            self._card = (stamps, _find_card(logged, places))
        return self._card[1]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes with a file; None where there is none."""
    try:
        held = path.stat()
    except (OSError, ValueError):
        return None
    return held.st_ino, held.st_size, held.st_mtime_ns


def _recipe_values(path: Path) -> Mapping[str, object]:
    # A run that is being removed has none, and one on a disk that refuses says so elsewhere.
    with suppress(OSError):
        return read_values(path)
    return {}


def _find_card(logged: Mapping[str, JsonValue] | None, places: Iterable[Path]) -> DataCard | None:
    if logged is not None:
        with suppress(TandemError):
            return DataCard.from_json(logged)
    for path in dict.fromkeys(places):
        with suppress(TandemError, OSError, ValueError):
            return read_card(path)
    return None
