"""A folder that appears when what is in it has been verified, and never before."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tandem.artefact import Build, building
from tandem.checkpoint.target import refuse_target
from tandem.progress import SILENT, Progress

__all__ = ["exporting"]


@contextmanager
def exporting(
    target: Path, *, kind: str, version: int, fingerprint: str, progress: Progress = SILENT
) -> Iterator[Build]:
    """Build a folder; where the block fails or is interrupted, nothing of it is left, not even beside its place."""
    refuse_target(target)
    with building(
        target, kind=kind, version=version, fingerprint=fingerprint, progress=progress, links=True
    ) as build:
        try:
            _clear(build.path)
            yield build
        except BaseException:
            shutil.rmtree(build.path, ignore_errors=True)
            raise


def _clear(folder: Path) -> None:
    """Forget what a killed export of the same has left: it is made anew from the start."""
    shutil.rmtree(folder)
    folder.mkdir()
