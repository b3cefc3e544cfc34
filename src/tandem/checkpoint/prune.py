"""Freeing room: which checkpoints of a run can go, and taking them away so that none is ever half there."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tandem.checkpoint.layout import REMOVED, clear_leftovers, leftovers, remove, remove_stale_residuals
from tandem.checkpoint.listing import (
    CheckpointInfo,
    by_bleu,
    by_loss,
    list_checkpoints,
    read_checkpoint_manifest,
    verify_files,
)
from tandem.checkpoint.retention import superfluous
from tandem.errors import TandemError
from tandem.files import tree_bytes
from tandem.lock import beside, holding, is_held
from tandem.progress import SILENT, Progress
from tandem.runlog.event import RunFinished
from tandem.runlog.layout import RunLayout, open_log
from tandem.runlog.record import from_line

__all__ = ["Plan", "plan_pruning", "prune"]

KEEP_BEST = 1
QUIET_S = 900.0
"""A run whose log does not say that it ended is taken to be training until it was quiet for so long."""
_TAIL_BYTES = 1 << 20
"""The longest last line that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What can go from a run, and what stays."""

    run: Path
    refusal: str
    """Why nothing may go, as a sentence; empty where something may."""
    goes: tuple[CheckpointInfo, ...]
    """The oldest first."""
    stays: tuple[CheckpointInfo, ...]
    """Whole ones, the newest last."""
    damaged: tuple[CheckpointInfo, ...]
    """Not touched: nobody knows what they are worth."""
    left_over: tuple[Path, ...]
    """Half-written folders of writers that were killed."""
    left_over_bytes: int
    stuck: Mapping[Path, str] = field(default_factory=dict)
    """What should have gone and is still there, or some of it is, and why."""

    @property
    def bytes(self) -> int:
        """That would be free, or are."""
        return sum(info.bytes for info in self.goes) + self.left_over_bytes


def plan_pruning(run: Path, *, keep: int = 1) -> Plan:
    """Look what can go: all whole checkpoints but the `keep` newest and the best by loss and by BLEU."""
    return _look(run, keep=keep, is_training=is_held(run) or _is_training(run))


def prune(run: Path, *, keep: int = 1, progress: Progress = SILENT) -> Plan:
    """Take away what can go, after every byte of the newest and of the best was checked; returns what went.

    Nobody can train in the run meanwhile. TandemError where somebody does; what went before an interrupt is gone
    as a whole, and what did not is as it was. What a disk does not let go of stops nothing else.
    """
    with holding(run):
        plan = _look(run, keep=keep, is_training=_is_training(run))
        if plan.refusal:
            raise TandemError(plan.refusal)
        plan = _checked(plan, keep=keep, progress=progress)
        stuck: dict[Path, str] = {}
        with progress.bar(f"Removing from {run.name}", total=len(plan.goes), unit="checkpoints") as bar:
            for info in plan.goes:
                stuck |= _remove(info.folder)
                bar.advance(1)
        clear_leftovers(RunLayout(run).checkpoints)
        remove_stale_residuals(RunLayout(run).residuals, RunLayout(run).checkpoints)
        return _gone(plan, stuck)


def _remove(folder: Path) -> dict[Path, str]:
    """Remove a checkpoint; gives what is left of it, and why."""
    try:
        reason = remove(folder)
    except OSError as error:
        return {folder: str(error.strerror or error)}
    return {beside(folder, REMOVED): reason} if reason else {}


def _gone(plan: Plan, stuck: Mapping[Path, str]) -> Plan:
    """The plan as it came true."""
    held = {
        folder: "a process writes there, or the disk refuses" for folder in plan.left_over if folder.exists()
    }
    left = tuple(folder for folder in plan.left_over if folder not in held)
    kept = {name for folder in stuck for name in (folder, folder.with_suffix(""))}
    return replace(
        plan,
        goes=tuple(info for info in plan.goes if info.folder not in kept),
        left_over=left,
        left_over_bytes=plan.left_over_bytes - sum(map(tree_bytes, held)),
        stuck={**held, **stuck},
    )


def _look(run: Path, *, keep: int, is_training: bool) -> Plan:
    if keep < 1:
        raise TandemError(f"Keeping {keep} would leave no newest checkpoint: keep at least 1.")
    checkpoints = RunLayout(run).checkpoints
    refusal = f"{run} is being trained, or its log says so: wait until it has ended." if is_training else ""
    if checkpoints.is_symlink():
        refusal = f"{checkpoints} is a link: name the run that it belongs to."
    # A link that looks like a checkpoint is somebody else's.
    infos = [info for info in list_checkpoints(checkpoints) if not info.folder.is_symlink()]
    return _plan(run, infos, keep=keep, refusal=refusal)


def _plan(run: Path, infos: Sequence[CheckpointInfo], *, keep: int, refusal: str) -> Plan:
    goes = () if refusal else tuple(superfluous(infos, keep_last=keep, keep_best=KEEP_BEST))
    left = () if refusal else tuple(leftovers(RunLayout(run).checkpoints))
    return Plan(
        run=run,
        refusal=refusal,
        goes=goes,
        stays=tuple(info for info in infos if info.is_complete and info not in goes),
        damaged=tuple(info for info in infos if not info.is_complete),
        left_over=left,
        left_over_bytes=sum(map(tree_bytes, left)),
    )


def _is_training(run: Path) -> bool:
    """Whether the newest word in the log is not that the run ended, and the log grew a short while ago.

    Ranks that another launcher started hold no lock, and locks of other machines may not be seen here.
    """
    newest_s, last_ns, is_ended = 0.0, 0, False
    for path in RunLayout(run).log.glob("*.jsonl"):
        newest_s = max(newest_s, path.stat().st_mtime)
        if path.name.startswith("samples-"):
            continue
        time_ns, ends = _last_word(path)
        if time_ns >= last_ns:
            last_ns, is_ended = time_ns, ends
    return not is_ended and time.time() - newest_s < QUIET_S


def _last_word(path: Path) -> tuple[int, bool]:
    """When the last line was written, and whether it says that the run ended; one that is torn says nothing."""
    with open_log(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        lines = file.read().split(b"\n")
    try:
        record = from_line(lines[-2])
    except (IndexError, ValueError):
        return time.time_ns(), False
    return record.time_ns, isinstance(record.event, RunFinished) and not lines[-1]


def _checked(plan: Plan, *, keep: int, progress: Progress) -> Plan:
    """Count as damaged what is, among those that must stay, until all of these are whole to the last byte."""
    infos = [*plan.goes, *plan.stays, *plan.damaged]
    whole: set[Path] = set()
    while True:
        infos.sort(key=lambda info: info.step)
        plan = _plan(plan.run, infos, keep=keep, refusal="")
        if not plan.goes:
            return plan
        guards = [*plan.stays[-1:], *by_loss(plan.stays)[:1], *by_bleu(plan.stays)[:1]]
        doubted = next((info for info in guards if info.folder not in whole), None)
        if doubted is None:
            return plan
        try:
            manifest, _ = read_checkpoint_manifest(doubted.folder)
            verify_files(doubted.folder, manifest, list(manifest.files), progress)
            whole.add(doubted.folder)
        except (OSError, TandemError) as error:
            infos = [replace(info, damage=str(error)) if info is doubted else info for info in infos]
