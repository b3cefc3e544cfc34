"""A run opened in another tool, to go on there where it was left."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tandem.config.document import read_values
from tandem.errors import TandemError
from tandem.files import make_folder
from tandem.lock import holding
from tandem.observe.sinks.bookmark import Bookmark, bookmark_path, read_bookmark, write_bookmark
from tandem.observe.sinks.forward import Forwarder
from tandem.observe.sinks.tool import TITLES, Opening, open_tool, require_tool

__all__ = ["forwarding_to"]

PROJECT = "tandem"


@contextmanager
def forwarding_to(
    tool: str, run: Path, *, project: str = "", name: str = "", offline: bool = False
) -> Iterator[Forwarder]:
    """A forwarder to the tool, which has got everything after the block; its troubles are one sentence."""
    require_tool(tool)
    path = bookmark_path(run, tool)
    make_folder(path.parent)
    with holding(path.with_suffix("")):
        bookmark = _bookmark(path, offline=offline, project=project, name=name)
        bookmark.name = bookmark.name or run.resolve().name
        try:
            opened = open_tool(tool, _opening(run, bookmark))
            bookmark.id = opened.id
            write_bookmark(path, bookmark)
            forwarder = Forwarder(opened, path, bookmark)
            try:
                yield forwarder
            finally:
                opened.close(forwarder.ending)
        except Exception as error:
            what = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise TandemError(
                f"{TITLES[tool]} does not take {run}: {what}; the run is not touched, and the same command goes on."
            ) from error


def _bookmark(path: Path, *, offline: bool, project: str, name: str) -> Bookmark:
    held = read_bookmark(path)
    if held is None:
        return Bookmark(project=project or PROJECT, name=name, offline=offline)
    wanted = (project or held.project, name or held.name, offline)
    if wanted != (held.project, held.name, held.offline):
        where = f"--project {held.project} --name {held.name}{' --offline' if held.offline else ''}"
        raise TandemError(
            f"The run was forwarded with {where} before: say the same, or remove {path} to begin another one there."
        )
    return held


def _opening(run: Path, bookmark: Bookmark) -> Opening:
    return Opening(
        run=run,
        project=bookmark.project,
        name=bookmark.name,
        id=bookmark.id,
        config=dict(read_values(run / "recipe.yaml")),
        offline=bookmark.offline,
    )
