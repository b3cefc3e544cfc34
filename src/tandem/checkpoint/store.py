"""The checkpoints of a run: saved from a background thread, thinned out by age and score, and found again."""

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tandem.artefact import JsonValue
from tandem.checkpoint.host import Crossing, copy_to_host, make_buffers
from tandem.checkpoint.layout import (
    MODEL,
    OPTIMIZER,
    RECIPE,
    STATE,
    clear_leftovers,
    remove,
    set_aside,
    step_folder,
    step_folders,
    step_of,
)
from tandem.checkpoint.listing import Scores, list_checkpoints
from tandem.checkpoint.restore import Restored, restore
from tandem.checkpoint.retention import superfluous
from tandem.checkpoint.subword import read_subword_files
from tandem.checkpoint.write import Draft, write_checkpoint
from tandem.errors import TandemError
from tandem.runlog.event import CheckpointFailed, CheckpointRejected, CheckpointRemoved, CheckpointWritten
from tandem.runlog.writer import RunLog

__all__ = ["CheckpointStore", "Restored", "Scores", "Snapshot"]

WAIT_S = 1.0
"""How often somebody who waits for a checkpoint says that he does."""
HANGING_TIMES, HANGING_S = 10.0, 600.0
"""He stops saying so after so many times the longest write, and at least so many seconds: the disk hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run at one step; the tensors may be the live ones, for `save` copies them before it returns."""

    step: int
    model: Mapping[str, Tensor]
    """The weights that translate."""
    optimizer: Mapping[str, Tensor]
    """What else training needs to go on."""
    state: Mapping[str, JsonValue]
    scores: Scores


class CheckpointStore:
    """The checkpoints of a run; one process writes them."""

    def __init__(
        self,
        folder: Path,
        *,
        recipe_text: str,
        subword_folder: Path,
        keep_last: int,
        keep_best: int,
        log: RunLog,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_wait` is called now and then while somebody waits for a checkpoint that is still being written.

        It is no longer called when that takes far longer than ever before: whoever watches shall see that it hangs.
        """
        self._folder, self._log, self._on_wait = folder, log, on_wait
        self._keep_last, self._keep_best = keep_last, keep_best
        self._recipe = recipe_text.encode()
        self._subword = read_subword_files(subword_folder)
        self._buffers: dict[str, dict[str, Tensor]] = {}
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tandem-checkpoint")
        self._writing: Future[str | None] | None = None
        self._failure: str | None = None
        self._longest_s = 0.0
        clear_leftovers(folder)

    def reserve(self, *, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]) -> None:
        """Get host memory for such tensors now, so that the first save holds nothing up."""
        self._buffers = {MODEL: make_buffers(model), OPTIMIZER: make_buffers(optimizer)}

    def save(self, snapshot: Snapshot) -> None:
        """Copy the snapshot, and write it in the background; waits first until the one before is written.

        A disk that refuses stops nothing: the run log says so, and all that was there stays.
        """
        begun_s = time.monotonic()
        self._finish()
        waited_s = time.monotonic() - begun_s
        with Crossing() as crossing:
            for name, tensors in ((MODEL, snapshot.model), (OPTIMIZER, snapshot.optimizer)):
                self._buffers[name] = copy_to_host(tensors, self._buffers.get(name))
        task = (snapshot.step, self._draft(snapshot), lambda: waited_s + crossing.wait())
        self._writing = self._pool.submit(self._save, *task)

    def wait(self) -> None:
        """Wait until nothing is being written; TandemError if the last checkpoint could not be."""
        self._finish()
        if self._failure is not None:
            raise TandemError(self._failure)

    def settle(self) -> None:
        """Wait until nothing is being written, whether it could be or not."""
        self._finish()

    def close(self) -> None:
        """Finish what is being written."""
        self._finish()
        self._pool.shutdown()

    def newest(self, *, before: int | None = None) -> Restored | None:
        """The newest whole checkpoint, every byte of it checked; None where none was ever written.

        With `before`, the newest of an earlier step. Newer ones that are not whole are logged and set aside. Where none
        is whole nothing is touched: TandemError.
        """
        self._finish()
        rejected: dict[Path, str] = {}
        folders = [
            folder for folder in step_folders(self._folder) if before is None or step_of(folder) < before
        ]
        for folder in reversed(folders):
            try:
                restored = restore(folder)
            except TandemError as error:
                rejected[folder] = str(error)
                self._log.log(CheckpointRejected(folder=_in_run(folder), reason=str(error)))
                continue
            for each in rejected:
                with suppress(OSError):  # then it is looked at again next time
                    set_aside(each)
            return restored
        if rejected:
            raise TandemError(
                f"No checkpoint in {self._folder} is whole: put a good copy there, or move the folder away to "
                f"begin again. The newest: {next(iter(rejected.values()))}"
            )
        return None

    def _finish(self) -> None:
        if self._writing is not None:
            end_s = time.monotonic() + max(HANGING_TIMES * self._longest_s, HANGING_S)
            while not wait([self._writing], timeout=WAIT_S).done:
                if time.monotonic() < end_s:
                    self._on_wait()
            self._failure = self._writing.result()
            self._writing = None

    def _draft(self, snapshot: Snapshot) -> Draft:
        state = json.dumps(snapshot.state, indent=1, sort_keys=True, allow_nan=False)
        return Draft(
            tensors=dict(self._buffers),
            texts={**self._subword.files, RECIPE: self._recipe, STATE: f"{state}\n".encode()},
            facts={
                "step": snapshot.step,
                "scores": snapshot.scores.to_json(),
                "subword": self._subword.facts,
            },
        )

    def _save(self, step: int, draft: Draft, blocked: Callable[[], float]) -> str | None:
        """Write a checkpoint and thin out the others; returns why it could not be written."""
        folder = step_folder(self._folder, step)
        blocked_s = blocked()
        begun_s = time.monotonic()
        try:
            sizes = write_checkpoint(folder, draft)
        except (OSError, TandemError) as error:
            reason = _told(error, folder)
            clear_leftovers(self._folder)
            self._log.log(CheckpointFailed(step=step, reason=reason))
            return reason
        write_s = time.monotonic() - begun_s
        self._longest_s = max(self._longest_s, write_s)
        self._log.log(
            CheckpointWritten(
                step=step,
                folder=_in_run(folder),
                bytes=sum(sizes.values()),
                blocked_s=blocked_s,
                write_s=write_s,
                files=sizes,
            )
        )
        self._thin_out()
        return None

    def _thin_out(self) -> None:
        infos = list_checkpoints(self._folder)
        for info in superfluous(infos, keep_last=self._keep_last, keep_best=self._keep_best):
            # A folder that cannot be removed now costs room, not the run: the next save tries again.
            with suppress(OSError):
                remove(info.folder)
                self._log.log(CheckpointRemoved(step=info.step, folder=_in_run(info.folder)))


def _in_run(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def _told(error: OSError | TandemError, folder: Path) -> str:
    if isinstance(error, TandemError):
        return str(error)
    return f"Cannot write {folder}: {error.strerror}; check the disk and your rights to it."
