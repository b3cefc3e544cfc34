"""What encoding gradients has left over, saved by each rank that owns some, beside the checkpoint of the same step.

Residuals differ from rank to rank, while a checkpoint's bytes are the same on every disk: so they lie in a folder of
their own, RUN/residuals/step-…/OWNER, and go when the checkpoint of their step goes.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tandem.artefact import JsonValue, building, fingerprint, read_manifest, verify
from tandem.checkpoint.host import Crossing, copy_to_host
from tandem.checkpoint.layout import KEPT_STEPS, remove_stale_residuals, step_folder, step_folders, step_of
from tandem.checkpoint.tensors import read_tensors, write_tensors
from tandem.errors import TandemError
from tandem.files import make_folder, refuse_link, remove_tree
from tandem.runlog.event import CheckpointFailed
from tandem.runlog.layout import RunLayout
from tandem.runlog.writer import RunLog

__all__ = ["KEPT_STEPS", "Owner", "ResidualStore"]

KIND, VERSION = "residuals", 1
FILE = "residuals.safetensors"
_OWNER = re.compile(r"host-(\d{1,5})-of-(\d{1,5})-share-(\d{1,5})-of-(\d{1,5})")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Owner:
    """Whose residuals they are: a host's owner of a share, and how many of both there are."""

    host: int
    hosts: int
    share: int
    shares: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"host-{self.host}-of-{self.hosts}-share-{self.share}-of-{self.shares}"

    @classmethod
    def maybe_parse(cls, name: str) -> "Owner | None":
        """From the name of a folder; None where it is no owner's."""
        found = _OWNER.fullmatch(name)
        if found is None:
            return None
        host, hosts, share, shares = map(int, found.groups())
        return cls(host=host, hosts=hosts, share=share, shares=shares)


class ResidualStore:
    """The residuals on this host's disk; each owner writes its own from a background thread."""

    def __init__(
        self, run: Path, *, owner: Owner | None, facts: Mapping[str, JsonValue], log: RunLog
    ) -> None:
        """Without an `owner` nothing can be saved; `facts` must be the same when residuals are read again."""
        self._run, self._owner, self._facts, self._log = run, owner, dict(facts), log
        self._buffers: dict[str, Tensor] = {}
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tandem-residuals")
        self._writing: Future[str] | None = None

    def save(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        """Copy the residuals, and write them in the background; waits first for those before."""
        self.wait()
        if self._owner is None:
            return
        with Crossing() as crossing:
            self._buffers = copy_to_host(tensors, self._buffers)
        self._writing = self._pool.submit(self._save, step, self._owner, dict(self._buffers), crossing)

    def wait(self) -> str:
        """Wait until nothing is being written; why the last could not be, empty where it was."""
        if self._writing is None:
            return ""
        return self._writing.result()

    def close(self) -> None:
        """Finish what is being written."""
        self.wait()
        self._pool.shutdown()

    def owners(self) -> dict[int, list[Owner]]:
        """By step: whose residuals are whole on this disk, as far as names tell."""
        found = {}
        for folder in _step_folders(self._run):
            with suppress(OSError):
                names = sorted(each.name for each in folder.iterdir() if not each.is_symlink())
                found[step_of(folder)] = [owner for name in names if (owner := Owner.maybe_parse(name))]
        return found

    def maybe_host(self, step: int, owner: Owner) -> str | None:
        """The host that an owner was on; None where that cannot be read."""
        try:
            manifest = read_manifest(self._own_folder(step, owner), kind=KIND, version=VERSION)
        except (OSError, TandemError):
            return None
        return str(manifest.facts.get("host"))

    def remove_stale(self, step: int) -> None:
        """Remove residuals on this disk whose checkpoints are gone, when `step` was saved last."""
        layout = RunLayout(self._run)
        remove_stale_residuals(layout.residuals, layout.checkpoints, before=step)

    def remove_later(self, step: int) -> None:
        """Remove residuals on this disk of steps after the one that a run goes on from.

        Another mode or other hosts may come to other ones: of no step may some be from before, and some from after.
        """
        for folder in _step_folders(self._run):
            if step_of(folder) > step:
                remove_tree(folder, ignore_errors=True)

    def load(self, step: int, owner: Owner) -> Mapping[str, Tensor]:
        """An owner's residuals, every byte checked; TandemError where they are not whole or do not fit."""
        folder = self._own_folder(step, owner)
        try:
            manifest = read_manifest(folder, kind=KIND, version=VERSION)
            verify(folder, manifest)
            tensors = read_tensors(folder / FILE)
        except OSError as error:
            raise TandemError(f"Cannot read {folder}: {error.strerror}.") from error
        if manifest.facts.get("layout") != self._facts.get("layout"):
            raise TandemError(f"{folder} is of gradients that are laid out in another way.")
        return tensors

    def _folder(self, step: int, owner: Owner) -> Path:
        return step_folder(RunLayout(self._run).residuals, step) / owner.name

    def _own_folder(self, step: int, owner: Owner) -> Path:
        """Where they are read: in the run's folder itself, through no link."""
        folder = self._folder(step, owner)
        for each in (folder, folder.parent, folder.parent.parent):
            refuse_link(each)
        return folder

    def _save(self, step: int, owner: Owner, tensors: Mapping[str, Tensor], crossing: Crossing) -> str:
        crossing.wait()
        folder = self._folder(step, owner)
        try:
            make_folder(folder.parent, below=self._run)
            with building(folder, kind=KIND, version=VERSION, fingerprint=fingerprint(self._facts)) as build:
                entry = write_tensors(build.path / FILE, tensors)
                build.known(FILE, bytes=entry.bytes, sha256=entry.sha256)
                build.facts = self._facts
        except (OSError, TandemError) as error:
            reason = f"Cannot write {folder}: {error}"
            self._log.log(CheckpointFailed(step=step, reason=reason))
            return reason
        self.remove_stale(step)
        return ""


def _step_folders(run: Path) -> Sequence[Path]:
    residuals = RunLayout(run).residuals
    if residuals.is_symlink():
        return []  # what lies where it leads to is not the run's
    return [folder for folder in step_folders(residuals) if not folder.is_symlink()]
