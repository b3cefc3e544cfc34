"""Where a bundle may be written: never over a run or what training goes on with, nor among a run's checkpoints."""

from pathlib import Path

from tandem.checkpoint.layout import OPTIMIZER, STATE, step_folders
from tandem.errors import TandemError
from tandem.runlog.layout import RunLayout

__all__ = ["refuse_target"]


def refuse_target(target: Path) -> None:
    """Refuse a folder to write to where a checkpoint would be lost, or what is written be taken for one."""
    for name in (STATE, OPTIMIZER):
        if (target / name).exists():
            raise TandemError(
                f"{target} is a checkpoint that training can go on from (it has {name}) and is not overwritten: name "
                "another folder to write to."
            )
    if _is_run(target):
        raise TandemError(
            f"{target} is a run, which only training writes to: name another folder to write to."
        )
    for parent in target.resolve().parents:
        if _holds_checkpoints(parent):
            raise TandemError(
                f"{target} lies among the checkpoints of a run, where only training writes: name a folder elsewhere to "
                "write to."
            )


def _is_run(folder: Path) -> bool:
    run = RunLayout(folder)
    return any(run.log.glob("*.jsonl")) or bool(step_folders(run.checkpoints))


def _holds_checkpoints(folder: Path) -> bool:
    run = RunLayout(folder.parent)
    return folder == run.checkpoints and (run.log.is_dir() or bool(step_folders(folder)))
