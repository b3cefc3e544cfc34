"""Whether a run is at work, silent, lost or over: one judgement, and one word, for all who show it."""

import os
import platform
from pathlib import Path
from typing import Literal, TypeAlias

from tandem.lock import beside, is_held, read_note
from tandem.observe.watch.state import FAILED, WatchState
from tandem.runlog.layout import RunLayout

__all__ = ["Life", "is_quiet", "life_of", "silence_s", "word_of"]

Life: TypeAlias = Literal["at work", "silent", "lost", "over"]
"""`lost`: its process is gone without a word; `silent`: it says nothing, and nobody knows why."""

NANO = 1_000_000_000
GONE_S = 5.0
"""Without a word for so long: a run that writes is there, whatever its process number says."""
SILENT_S = 30.0
SILENT_EVALUATION_S = 300.0
"""Translating a large set takes a while, and nothing is said meanwhile."""
SILENT_STEPS = 10
STOPPED = ("asked to stop", "stopped by", "interrupted")


def life_of(state: WatchState, *, folder: Path | None, now_ns: int) -> Life:
    """What is to be thought of a run at a moment; without its folder, by its log alone."""
    if state.doing in {"finished", "imported"}:
        return "over"
    if not state.last_time_ns:
        return "at work"
    quiet_s = silence_s(state, now_ns=now_ns)
    if folder is not None and quiet_s >= GONE_S and _is_gone(folder):
        return "lost"
    patience_s = SILENT_S if state.doing == "training" else SILENT_EVALUATION_S
    return "silent" if quiet_s > max(patience_s, SILENT_STEPS * state.recent.step_s) else "at work"


def is_quiet(life: Life) -> bool:
    """Whether the run says nothing although it is not over."""
    return life in {"silent", "lost"}


def silence_s(state: WatchState, *, now_ns: int) -> float:
    """Seconds since its last word."""
    return max(0.0, (now_ns - state.last_time_ns) / NANO) if state.last_time_ns else 0.0


def word_of(state: WatchState, life: Life) -> str:
    """What it does, or `silent`, `lost`, `finished`, `stopped`, `failed`, `imported`."""
    if is_quiet(life):
        return life
    if state.doing == "finished" and state.ended.startswith(STOPPED):
        return "stopped"
    return "failed" if state.doing == "finished" and state.ended.startswith(FAILED) else state.doing


def _is_gone(folder: Path) -> bool:
    """Whether the process that made the run is dead; only the host on which it ran can tell."""
    run = folder.resolve()
    try:
        if is_held(run) or not _ran_here(run):
            return False
        pid = read_note(beside(run, "lock")).get("pid")
        if not isinstance(pid, int) or pid <= 0:
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _ran_here(run: Path) -> bool:
    """Whether this host was the last to make the run: others that share its folder know nothing of its process."""
    layout = RunLayout(run)
    logs = {path: path.stat().st_mtime_ns for path in layout.log.glob("host-*.jsonl")}
    return bool(logs) and max(logs, key=logs.__getitem__) == layout.host_log(platform.node())
