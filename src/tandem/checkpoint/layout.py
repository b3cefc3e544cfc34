"""Which folder and file of a checkpoint is called what, and what may lie beside a checkpoint."""

import os
import re
from contextlib import suppress
from pathlib import Path

from tandem.artefact import settle
from tandem.errors import TandemError
from tandem.files import remove_tree
from tandem.lock import beside, locked

__all__ = [
    "KEPT_STEPS",
    "KIND",
    "MANIFEST",
    "MODEL",
    "OPTIMIZER",
    "RECIPE",
    "REMOVED",
    "STATE",
    "VERSION",
    "clear_leftovers",
    "leftovers",
    "remove",
    "remove_stale_residuals",
    "set_aside",
    "set_aside_folders",
    "step_folder",
    "step_folders",
    "step_of",
]

KIND = "checkpoint"
VERSION = 1

MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
RECIPE = "recipe.yaml"
MANIFEST = "manifest.json"

KEPT_STEPS = 2
"""Newest steps whose residuals stay in any case."""

REMOVED = "removed"
"""Ends the name of a folder that is being deleted: readers no longer see it."""
REJECTED = "rejected"
"""Ends the name of a folder that could not be used; only its owner deletes it."""

# A crash while a checkpoint is replaced leaves the old one as `.old`: reading it by its own name puts it back.
_STEP = re.compile(r"step-(\d{8,15})(?:\.old)?")
_SET_ASIDE = re.compile(rf"step-(\d{{8,15}})\.{REJECTED}(?:-\d+)?")
_LEFTOVER = re.compile(r"(step-\d{8,15})\.(?:partial|lock|old)")
_HALF = re.compile(rf"step-\d{{8,15}}\.(partial|{REMOVED})")


def step_folder(checkpoints: Path, step: int) -> Path:
    """The folder of a step's checkpoint."""
    return checkpoints / f"step-{step:08d}"


def step_of(folder: Path) -> int:
    """The step that a checkpoint's folder is named after."""
    return int(folder.name.partition("-")[2].partition(".")[0])


def step_folders(checkpoints: Path) -> list[Path]:
    """The folders of all checkpoints, whole or not, the newest last; those set aside are not among them."""
    steps = {int(found[1]) for name in _names(checkpoints) if (found := _STEP.fullmatch(name))}
    return [step_folder(checkpoints, step) for step in sorted(steps)]


def set_aside_folders(checkpoints: Path) -> list[Path]:
    """The folders that were set aside because they could not be used."""
    return [checkpoints / name for name in sorted(_names(checkpoints)) if _SET_ASIDE.fullmatch(name)]


def set_aside(folder: Path) -> None:
    """Rename a checkpoint so that it is no longer taken for one."""
    target, number = beside(folder, REJECTED), 1
    while target.exists():
        number += 1
        target = beside(folder, f"{REJECTED}-{number}")
    folder.rename(target)


def remove(folder: Path) -> str:
    """Delete a checkpoint; a reader, or a crash, sees all of it or nothing. Returns why some of its files are left."""
    doomed = beside(folder, REMOVED)
    _delete(doomed)
    folder.rename(doomed)
    # What a disk will not let go of now is deleted by a later start.
    return _delete(doomed)


def leftovers(checkpoints: Path) -> list[Path]:
    """Folders that a killed writer left half-written, or a killed remover half-deleted; some may still be written."""
    return [checkpoints / name for name in sorted(_names(checkpoints)) if _HALF.fullmatch(name)]


def remove_stale_residuals(residuals: Path, checkpoints: Path, *, before: int | None = None) -> None:
    """Remove residuals of steps whose checkpoints are gone; with `before`, only of steps before the last two up to it.

    The checkpoints of those may still be written, or be on another host only; later ones will be written again.
    """
    if residuals.is_symlink():
        return  # what lies where it leads to is not the run's
    folders = step_folders(residuals)
    if before is not None:
        folders = [folder for folder in folders if step_of(folder) <= before][:-KEPT_STEPS]
    kept = {step_of(folder) for folder in step_folders(checkpoints)}
    for folder in folders:
        if step_of(folder) not in kept:
            # Another rank of this host may be at it; what stays costs room, and the next save tries again.
            remove_tree(folder, ignore_errors=True)


def clear_leftovers(checkpoints: Path) -> None:
    """Delete what a kill or a full disk left half-written; leaves alone what another process is writing."""
    for name in _names(checkpoints):
        if (half := _HALF.fullmatch(name)) and half[1] == REMOVED:
            _delete(checkpoints / name)
        elif leftover := _LEFTOVER.fullmatch(name):
            # Busy, or on a disk that refuses: neither stops the run, and a later start tries again.
            with suppress(OSError, TandemError):
                _clear(checkpoints / leftover[1])


def _delete(folder: Path) -> str:
    """Delete all that the disk lets go of; returns why something is left, empty where nothing is."""
    try:
        remove_tree(folder)
    except OSError as error:
        remove_tree(folder, ignore_errors=True)
        return str(error.strerror or error) if os.path.lexists(folder) else ""
    return ""


def _clear(folder: Path) -> None:
    if folder.is_symlink():
        return  # what lies beside that which it leads to is not ours
    settle(folder)
    with locked(folder.resolve()):
        partial = beside(folder.resolve(), "partial")
        if partial.exists():
            remove_tree(partial)


def _names(checkpoints: Path) -> list[str]:
    return [path.name for path in checkpoints.iterdir()] if checkpoints.is_dir() else []
