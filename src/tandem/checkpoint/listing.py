"""What checkpoints there are, how good they are, and whether they are whole; reads manifests only."""

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem.artefact import JsonValue, Manifest, read_manifest, sha256_file
from tandem.checkpoint.layout import KIND, MANIFEST, VERSION, set_aside_folders, step_folders, step_of
from tandem.errors import TandemError
from tandem.progress import SILENT, Progress

__all__ = [
    "CheckpointInfo",
    "Scores",
    "by_bleu",
    "by_loss",
    "list_checkpoints",
    "maybe_score",
    "read_checkpoint_manifest",
    "verify_files",
]

_MOST_SCORE = 1e30
_LATEST_S = 2.5e11
_AGAIN = "use another checkpoint, or copy this one again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What the evaluation at a step found on the valid set; None where it was not measured."""

    loss: float | None = None
    bleu: float | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """As the manifest keeps them; what is not a finite number ranks nothing and is not kept."""
        return {"loss": _finite(self.loss), "bleu": _finite(self.bleu)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """One checkpoint, as its folder tells."""

    folder: Path
    step: int
    scores: Scores
    files: Mapping[str, int]
    """Bytes by name."""
    written: datetime
    """When its manifest, the last of its files, was written."""
    damage: str | None = None
    """Why it cannot be used; None for a whole one."""
    is_newest: bool = False
    is_best_loss: bool = False
    is_best_bleu: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether it can be used, as far as was looked."""
        return self.damage is None

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(self.files.values())


def list_checkpoints(
    folder: Path, *, verify: bool = False, progress: Progress = SILENT
) -> list[CheckpointInfo]:
    """The checkpoints in a folder, the newest last, and behind them those set aside; `verify` reads every byte."""
    found = [_describe(each, verify=verify, progress=progress) for each in step_folders(folder)]
    infos = [info for info in found if info is not None]
    aside = [_damaged(each, "It could not be used, and was set aside.") for each in set_aside_folders(folder)]
    return _marked(infos) + [info for info in aside if info is not None]


def by_loss(infos: Sequence[CheckpointInfo]) -> list[CheckpointInfo]:
    """Those with a loss, the best first; of equals the newer."""
    return _ranked(infos, lambda scores: None if scores.loss is None else -scores.loss)


def by_bleu(infos: Sequence[CheckpointInfo]) -> list[CheckpointInfo]:
    """Those with a BLEU score, the best first; of equals the newer."""
    return _ranked(infos, lambda scores: scores.bleu)


def read_checkpoint_manifest(folder: Path, *, sizes: bool = True) -> tuple[Manifest, Scores]:
    """The manifest of a checkpoint and the scores in it."""
    manifest = read_manifest(folder, kind=KIND, version=VERSION, sizes=sizes)
    held: Any = manifest.facts.get("scores")
    try:
        return manifest, Scores(**{name: maybe_score(value) for name, value in held.items()})
    except (AttributeError, TypeError, ValueError):
        raise TandemError(f"The scores in {folder / MANIFEST} are none: {_AGAIN}.") from None


def maybe_score(value: Any) -> float | None:
    """A score as it was kept: None for one that was not measured, ValueError for what is none."""
    if value is None:
        return None
    if type(value) not in {int, float} or not -_MOST_SCORE < value < _MOST_SCORE:
        raise ValueError("a score is a number")
    return float(value)


def verify_files(
    folder: Path, manifest: Manifest, names: Collection[str], progress: Progress = SILENT
) -> None:
    """Compare the named files with their checksums; TandemError names the first that differs.

    Files that the manifest does not know are nobody's harm: a note laid into a checkpoint does not spoil it.
    """
    for name in names:
        if name not in manifest.files:
            raise TandemError(f"{folder} does not list {name} among its files: {_AGAIN}.")
    total = sum(manifest.files[name].bytes for name in names)
    with progress.bar(f"Checking {folder.name}", total=total, unit="B") as bar:
        for name in names:
            try:
                size = (folder / name).lstat().st_size
                # Before so much is read: it may be anything.
                found = sha256_file(folder / name) if size == manifest.files[name].bytes else ""
            except OSError as error:
                raise TandemError(f"Cannot read {folder / name}: {error.strerror}; {_AGAIN}.") from error
            if found != manifest.files[name].sha256:
                raise TandemError(f"{folder / name} is damaged (its checksum differs): {_AGAIN}.")
            bar.advance(manifest.files[name].bytes)


def _finite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None


def _ranked(infos: Sequence[CheckpointInfo], worth: Callable[[Scores], float | None]) -> list[CheckpointInfo]:
    judged = [(value, info.step, info) for info in infos if (value := worth(info.scores)) is not None]
    return [info for _, _, info in sorted(judged, key=lambda each: each[:2], reverse=True)]


def _describe(folder: Path, *, verify: bool, progress: Progress) -> CheckpointInfo | None:
    """What the folder holds; None for one that went away meanwhile."""
    try:
        manifest, scores = read_checkpoint_manifest(folder)
        if verify:
            verify_files(folder, manifest, list(manifest.files), progress)
        last = (folder / MANIFEST).stat()
        sizes = {name: entry.bytes for name, entry in manifest.files.items()}
        return CheckpointInfo(
            folder=folder,
            step=step_of(folder),
            scores=scores,
            files={**sizes, MANIFEST: last.st_size},
            written=_moment(last),
        )
    except (OSError, TandemError) as error:
        return _damaged(folder, str(error))


def _damaged(folder: Path, reason: str) -> CheckpointInfo | None:
    try:
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
        return CheckpointInfo(
            folder=folder,
            step=step_of(folder),
            scores=Scores(),
            files=sizes,
            written=_moment(folder.stat()),
            damage=reason,
        )
    except (FileNotFoundError, NotADirectoryError):
        return None


def _moment(last: os.stat_result) -> datetime:
    # A disk may say any time, and a date has no more years.
    return datetime.fromtimestamp(min(max(0.0, last.st_mtime), _LATEST_S), tz=UTC)


def _marked(infos: list[CheckpointInfo]) -> list[CheckpointInfo]:
    whole = [info for info in infos if info.is_complete]
    newest, best_loss, best_bleu = whole[-1:], by_loss(whole)[:1], by_bleu(whole)[:1]
    return [
        replace(
            info,
            is_newest=info in newest,
            is_best_loss=info in best_loss,
            is_best_bleu=info in best_bleu,
        )
        for info in infos
    ]
