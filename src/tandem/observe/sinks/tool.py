"""What a tool that a run is forwarded to must be able to do, and the tools that there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from tandem.errors import TandemError
from tandem.files import UnfitFileError, make_folder, walk
from tandem.observe.sinks.curves import Point
from tandem.runlog.event import SampleTranslated

__all__ = ["COLUMNS", "TITLES", "Ending", "Opening", "Tool", "open_tool", "require_tool", "table_rows"]

TITLES = {"wandb": "Weights & Biases", "mlflow": "MLflow", "trackio": "Trackio"}
"""The tools, as the command line and as people call them."""

COLUMNS = ("source", "reference", "translation")

Ending: TypeAlias = Literal["goes on", "well", "badly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Which run shall be begun in a tool, or gone on with."""

    run: Path
    project: str
    name: str
    id: str
    """Empty for a new one."""
    config: Mapping[str, object]
    offline: bool

    @property
    def folder(self) -> Path:
        """Where a tool may keep files of its own."""
        return self.run.resolve() / "forward"


class Tool(Protocol):
    """A run of another tool, open for more; every method may raise whatever the tool's library raises."""

    id: str

    def log_points(self, points: Sequence[Point]) -> None:
        """Add to the curves; of one curve the steps only grow."""

    def log_translations(self, step: int, samples: Sequence[SampleTranslated]) -> None:
        """Show translations beside their references."""

    def log_events(self, step: int, lines: Sequence[tuple[str, str]]) -> None:
        """Show the event log, whose lines are times and sentences, in place of what was shown before."""

    def log_facts(self, step: int, facts: Mapping[str, str]) -> None:
        """Put short texts beside the run; one with the name of an earlier one replaces it."""

    def close(self, ending: Ending) -> None:
        """Hand over all that is left."""


def require_tool(name: str) -> None:
    """Refuse a tool that is not known, or whose library is not installed."""
    if name not in TITLES:
        raise TandemError(f"Runs cannot be forwarded to {name!r}: choose one of {', '.join(TITLES)}.")
    if find_spec(name) is None:
        raise TandemError(f"{TITLES[name]} is not installed: pip install 'tandem-nmt[{name}]'.")


def open_tool(name: str, opening: Opening) -> Tool:
    """Begin the run in the tool, or go on with it."""
    require_tool(name)
    _refuse_links(opening.folder)
    tool: Tool = import_module(f"tandem.observe.sinks.{name}_tool").open_run(opening)
    return tool


def _refuse_links(folder: Path) -> None:
    """A tool's library writes where a link leads; wandb makes some itself, in folders that it makes anew each time."""
    make_folder(folder)
    for entry in walk(folder):
        if entry.is_symlink() and folder / "wandb" not in Path(entry.path).parents:
            raise UnfitFileError(f"{entry.path} is a link: remove it.")


def table_rows(samples: Sequence[SampleTranslated]) -> list[list[str]]:
    """The cells under COLUMNS."""
    return [[each.source, each.reference, each.hypothesis] for each in samples]
