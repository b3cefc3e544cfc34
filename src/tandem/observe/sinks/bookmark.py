"""How far a run was forwarded to a tool: kept in the run's folder, so that nothing is forwarded twice."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tandem.artefact import write_atomic
from tandem.errors import TandemError
from tandem.files import make_folder, read_json

__all__ = ["Bookmark", "bookmark_path", "read_bookmark", "write_bookmark"]


@dataclass(slots=True, kw_only=True)
class Bookmark:
    """Which run of the tool it is, and what that has."""

    id: str = ""
    """As the tool names the run; empty before it was begun there."""
    project: str
    name: str
    offline: bool
    taken: dict[str, int] = field(default_factory=dict)
    """How many records of each writer are in it: files of a log only grow, whatever a clock does."""
    steps: dict[str, int] = field(default_factory=dict)
    """The last step of every curve."""
    events: int = 0
    """Lines of the event log."""
    answers: str = ""
    """Fingerprint of the answers that it has."""


def bookmark_path(run: Path, tool: str) -> Path:
    """Where a run keeps it."""
    return run / "forward" / f"{tool}.json"


def read_bookmark(path: Path) -> Bookmark | None:
    """The bookmark, if there is one; raises TandemError where it cannot be understood."""
    try:
        return Bookmark(**read_json(path))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise TandemError(
            f"{path} cannot be understood: remove it to forward the run once more from its beginning."
        ) from error


def write_bookmark(path: Path, bookmark: Bookmark) -> None:
    """Keep it."""
    make_folder(path.parent)
    write_atomic(path, json.dumps(asdict(bookmark), indent=1).encode())
