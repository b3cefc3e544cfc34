"""Where runs stand, read from the ends of their logs: quick however long they are and however many there are."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from operator import attrgetter
from pathlib import Path

from tandem.errors import TandemError
from tandem.files import UnfitFileError, tree_bytes
from tandem.observe.numbers import count
from tandem.observe.watch.life import life_of, word_of
from tandem.observe.watch.progress import Progress, progress_of, status, way_of
from tandem.observe.watch.state import WatchState
from tandem.runlog.layout import RunLayout, open_log
from tandem.runlog.record import Record, from_line

__all__ = ["Best", "Listed", "Sizes", "damaged_run", "find_runs", "list_run", "sizes_of"]

HEAD_BYTES = 256 << 10
TAIL_BYTES = 4 << 20
"""Of the leader's log; of logs of hosts the former."""
PARTS = ("log", "checkpoints", "recipe.yaml")
"""What may be left of a run, or be there before all else of it."""
KEPT_STEPS = 50
"""Of each piece that is read: the pace of a run is that of its last steps."""
_STEP = b'"event":"StepFinished"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best score of a run, as far as it is known."""

    value: float
    step: int | None
    """None where only the value is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes on disk."""

    checkpoints: int
    data: int
    """Prepared text in the run's own folder."""
    rest: int

    @property
    def whole(self) -> int:
        """All of them."""
        return self.checkpoints + self.data + self.rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One run in a list."""

    folder: Path
    state: str
    """What it does, or `finished`, `stopped`, `failed`, `silent`, `lost`, `imported`, `damaged`."""
    status: str
    """The same in words."""
    step: int
    share: float | None
    """Of the way to the stop rule that comes first; None before training starts, and of imported runs."""
    way: str
    """The same in words."""
    text: str
    """Of a run that ended why, else the same."""
    best_loss: Best | None
    best_bleu: Best | None
    is_all_read: bool
    """Whether the best of the log is the best of all of it: long logs are read at their ends only."""
    last_time_ns: int
    """When it was last heard of; 0 where its log has no readable line."""
    sizes: Sizes
    trouble: str
    """What is wrong with it; empty where nothing is."""


def find_runs(folder: Path) -> list[Path]:
    """The folder itself where it is a run, else the runs in it, by name."""
    if not folder.is_dir():
        raise TandemError(f"There is no folder {folder}: check the path.")
    if _has_traces(folder):
        return [folder]
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and _is_run(path))
    # A folder of runs may hold a recipe too, or a folder that only has the name of a part.
    return [folder] if _is_run(folder) and not any(map(_has_traces, inside)) else inside


def list_run(run: Path, *, now_ns: int | None = None) -> Listed:
    """Where a run stands; whatever is wrong with it is told, not raised."""
    try:
        return _list_run(run, now_ns=now_ns)
    except Exception as error:  # noqa: BLE001 - one damaged run must not take the list of all down
        return damaged_run(run, error)


def damaged_run(run: Path, error: Exception) -> Listed:
    """The row of a run that cannot be read, with the reason."""
    reason = str(error).rstrip(".") if isinstance(error, TandemError | OSError) else type(error).__name__
    return Listed(
        folder=run,
        state="damaged",
        status="damaged",
        step=0,
        share=None,
        way="",
        text="damaged",
        best_loss=None,
        best_bleu=None,
        is_all_read=True,
        last_time_ns=0,
        sizes=_maybe_sizes(run),
        trouble=f"It cannot be read: {reason}.",
    )


def _list_run(run: Path, *, now_ns: int | None) -> Listed:
    ends, now_ns = _Ends(run), time.time_ns() if now_ns is None else now_ns
    state = WatchState(run=run.resolve().name)
    for record in ends.records:
        state.apply(record)
    evaluations = list(state.evaluations)
    losses = [(each.valid_loss, each.step) for each in evaluations if each.valid_loss is not None]
    scores = [(each.bleu, each.step) for each in evaluations if each.bleu is not None]
    life, progress = life_of(state, folder=run, now_ns=now_ns), _progress(state)
    way = way_of(state, progress)
    return Listed(
        folder=run,
        state="damaged" if ends.trouble and not ends.records else word_of(state, life),
        status=status(state, life=life, now_ns=now_ns),
        step=state.step,
        share=None if progress is None else progress.share,
        way=way,
        text=state.ended or way,
        best_loss=_best([(-value, step) for value, step in losses if isfinite(value)], sign=-1),
        best_bleu=_best([each for each in scores if isfinite(each[0])], sign=1),
        is_all_read=ends.is_all_read,
        last_time_ns=state.last_time_ns,
        sizes=sizes_of(run),
        trouble=ends.trouble,
    )


def _has_traces(folder: Path) -> bool:
    """Whether a run has left something there."""
    layout = RunLayout(folder)
    return any(layout.log.glob("*.jsonl")) or any(layout.checkpoints.glob("step-*"))


def _is_run(folder: Path) -> bool:
    # os.path answers where Path.exists raises: of a folder that one may not look into.
    has = [name for name in PARTS if os.path.exists(folder / name)]  # noqa: PTH110
    # Prepared data has a recipe too.
    return bool(has) and (has != ["recipe.yaml"] or not (folder / "card.json").exists())


def _progress(state: WatchState) -> Progress | None:
    """By the rules that count steps or tokens: of most steps nothing was read, so that all are taken to be alike."""
    started = state.started
    if started is None:
        return None
    state.tokens = started.tokens + (state.step - started.step) * started.target_tokens_per_update
    state.started = replace(started, max_minutes=0.0)
    return progress_of(state, life="at work")


def _best(found: list[tuple[float, int]], *, sign: int) -> Best | None:
    if not found:
        return None
    value, step = max(found)
    return Best(value=sign * value, step=step)


class _Ends:
    """The records at both ends of a run's logs, in order of time."""

    def __init__(self, run: Path) -> None:
        self.trouble = ""
        self.is_all_read = True
        self._damaged = 0
        self.records: list[Record] = []
        try:
            self._read(run)
        except OSError as error:
            self.trouble = f"Its log cannot be read: {error.strerror or error}."
        if self._damaged and not self.trouble:
            self.trouble = f"{count(self._damaged)} lines of its log cannot be read."
        self.records.sort(key=attrgetter("time_ns"))

    def _read(self, run: Path) -> None:
        log = RunLayout(run).log
        ranks, hosts = sorted(log.glob("rank-*.jsonl")), sorted(log.glob("host-*.jsonl"))
        others = [] if ranks or hosts else sorted(log.glob("*.jsonl"))
        if not ranks and not hosts and not others:
            self.trouble = "It has no log."
        for path in (*ranks[:1], *others):
            self._read_file(path, TAIL_BYTES)
        for path in hosts:
            self._read_file(path, HEAD_BYTES)

    def _read_file(self, path: Path, tail_bytes: int) -> None:
        # What is wrong with one file does not spoil what the others say.
        try:
            self._read_ends(path, tail_bytes)
        except UnfitFileError as error:
            self.trouble = str(error)

    def _read_ends(self, path: Path, tail_bytes: int) -> None:
        with open_log(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= HEAD_BYTES + tail_bytes:
                self._take(file.read(), is_begun=True)
                return
            self.is_all_read = False
            self._take(file.read(HEAD_BYTES), is_begun=True)
            file.seek(size - tail_bytes)
            self._take(file.read(), is_begun=False)

    def _take(self, held: bytes, *, is_begun: bool) -> None:
        """Whole lines only; of steps the last ones, since they are most of a log and say the same."""
        lines = held.split(b"\n")[0 if is_begun else 1 : -1]
        steps = [number for number, line in enumerate(lines) if _STEP in line]
        passed = set(steps[:-KEPT_STEPS])
        for record in self._parsed(line for number, line in enumerate(lines) if number not in passed):
            self.records.append(record)

    def _parsed(self, lines: Iterator[bytes]) -> Iterator[Record]:
        for line in lines:
            try:
                yield from_line(line)
            except ValueError:
                self._damaged += bool(line)


def sizes_of(run: Path) -> Sizes:
    """What a run takes on disk."""
    layout = RunLayout(run)
    checkpoints, data = tree_bytes(layout.checkpoints), tree_bytes(run / "data")
    return Sizes(checkpoints=checkpoints, data=data, rest=tree_bytes(run) - checkpoints - data)


def _maybe_sizes(run: Path) -> Sizes:
    """The same of a run with which anything may be wrong: what cannot be found out is left out."""
    try:
        return sizes_of(run)
    except Exception:  # noqa: BLE001 - the row of a damaged run is the last that is left to tell of it
        return Sizes(checkpoints=0, data=0, rest=0)
