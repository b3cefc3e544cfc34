"""What lies beside a run's log: its recipe, and the card of its data."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import yaml

from tandem.artefact import JsonValue
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
            self._recipe = (stamp, _read_recipe(path))
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


def _read_recipe(path: Path) -> Mapping[str, object]:
    with suppress(OSError, ValueError, yaml.YAMLError):
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(held, dict):
            return held
    return {}


def _find_card(logged: Mapping[str, JsonValue] | None, places: Iterable[Path]) -> DataCard | None:
    if logged is not None:
        with suppress(TandemError):
            return DataCard.from_json(logged)
    for path in dict.fromkeys(places):
        with suppress(TandemError, OSError, ValueError):
            return read_card(path)
    return None
