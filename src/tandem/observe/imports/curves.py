"""Curves out of TensorBoard's files: every point of a folder, by what it is, whatever its tool calls it."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from tandem.errors import TandemError
from tandem.files import walk
from tandem.observe.imports.event_points import EventFile, Point, is_event_file
from tandem.observe.imports.named import Named
from tandem.observe.imports.writers import settle_writers
from tandem.observe.visible import visible
from tandem.progress import SILENT, Progress

__all__ = ["Curves", "read_curves"]

_MOST_STEPS = 10**12
_LATEST_S = 4e9
"""Seconds since 1970, in the year 2096: a clock that shows more is out of order."""

# Names as they are compared: in lower case, with words joined by one underscore.
_TAGS = {
    "train_loss": "train_loss|loss|training_loss|loss_train|cross_entropy|batch_loss|progress_xent",
    "train_nll": "train_nll|train_nll_loss|nll_loss",
    "eval_loss": "eval_loss|val_loss|valid_loss|validation_loss|dev_loss|loss_eval|loss_val|loss_valid"
    "|loss_validation|valid_xent",
    "probe_loss": "probe_loss",
    "learning_rate": "learning_rate|lr|train_learning_rate|train_lr|optimizer_lr|lr_group_0"
    "|progress_lr|optim_learning_rate",
    "global_gradient_norm": "global_gradient_norm|grad_norm|gradient_norm|gnorm|train_grad_norm|train_gnorm"
    "|global_norm_gradient_norm|gradients_global_norm",
    "loss_scale": "loss_scale|train_loss_scale",
    "steps_per_second": "global_step_sec|steps_per_second|steps_per_sec|steps_sec|train_steps_per_second",
    "target_tokens_per_second": "target_tokens_per_second|progress_tgtper|words_per_sec_target",
}
_KNOWN = {name: kind for kind, names in _TAGS.items() for name in names.split("|")}
_SCORE = re.compile(r"(?:^|_)(?:s?acre)?(?:bleu|chrf|ter|comet)(?:_|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The points of all files in the order of their times."""

    points: Sequence[Named] = ()
    files: tuple[str, ...] = ()
    begins: Mapping[str, float] = field(default_factory=dict)
    """When each file was made, by its name as the points have it; 0 where it does not say."""
    unused: tuple[str, ...] = ()
    """Tags of which it is not known what they are."""
    torn: int = 0
    """Files that end in a torn or spoilt record."""
    skipped: int = 0
    """Records that could not be read."""
    _by_kind: dict[str, tuple[list[int], list[Named]]] = field(default_factory=dict, repr=False)

    def near(self, kind: str, step: int, *, within: int) -> float:
        """The value at the nearest step; nan where none is so near."""
        steps, points = self._of(kind)
        place = bisect_left(steps, step)
        nearest = min(
            points[max(0, place - 1) : place + 1], key=lambda each: abs(each.step - step), default=None
        )
        return nearest.value if nearest is not None and abs(nearest.step - step) <= within else math.nan

    def step_of(self, kind: str, value: float, *, within: float) -> int | None:
        """The step at which a curve has this value, where there is exactly one."""
        found = {point.step for point in self._of(kind)[1] if abs(point.value - value) <= within}
        return found.pop() if len(found) == 1 else None

    def wall_times(self) -> dict[int, float]:
        """When each step was written that training itself wrote something about."""
        return {
            point.step: point.wall_s for point in self.points if point.kind in {"train_loss", "learning_rate"}
        }

    def _of(self, kind: str) -> tuple[list[int], list[Named]]:
        if kind not in self._by_kind:
            points = sorted((each for each in self.points if each.kind == kind), key=lambda each: each.step)
            self._by_kind[kind] = ([each.step for each in points], points)
        return self._by_kind[kind]


def read_curves(folder: Path, progress: Progress = SILENT) -> Curves:
    """Read all event files of one run below a folder, or one file; raises where there is none, or several runs."""
    paths = _find(folder)
    named: list[Named] = []
    unused: set[str] = set()
    files = [EventFile(path) for path in paths]
    total = sum(path.stat().st_size for path in paths)
    with progress.bar("event files", total=total, unit="B") as bar:
        for file in files:
            found, others = _name(file.points(bar), place=_place(file.path, folder))
            named += found
            unused |= others
    return Curves(
        points=tuple(sorted(settle_writers(named, folder=folder), key=lambda point: point.wall_s)),
        files=tuple(visible(str(_place(path, folder))) for path in paths),
        begins={str(_place(file.path, folder)): file.begin_s for file in files},
        unused=tuple(sorted(unused)),
        torn=sum(file.is_torn for file in files),
        skipped=sum(file.skipped for file in files),
    )


def _place(path: Path, folder: Path) -> PurePath:
    return path.relative_to(folder) if path != folder else PurePath(path.name)


def _find(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise TandemError(f"There is no folder {folder}: name the one with TensorBoard's event files.")
    found = (Path(entry.path) for entry in walk(folder))
    paths = sorted(path for path in found if is_event_file(path) and path.is_file())
    if not paths:
        raise TandemError(f"{folder} has no event file (…tfevents…): name the folder that TensorBoard shows.")
    return paths


def _name(points: Iterable[Point], *, place: PurePath) -> tuple[list[Named], set[str]]:
    named: list[Named] = []
    unused: set[str] = set()
    kinds: dict[str, str | None] = {}
    writer, file = "/".join(place.parent.parts), str(place)
    for point in points:
        if point.tag not in kinds:
            kinds[point.tag] = _kind(point.tag)
        kind = kinds[point.tag]
        if kind is None:
            unused.add(point.tag)
        elif 0 <= point.step < _MOST_STEPS and 0 <= point.wall_s < _LATEST_S:
            named.append(
                Named(
                    kind=kind,
                    tag=point.tag,
                    writer=writer,
                    file=file,
                    wall_s=point.wall_s,
                    step=point.step,
                    value=point.value,
                )
            )
    return named, unused


def _kind(tag: str) -> str | None:
    if tag.startswith("phase/"):
        return tag
    plain = re.sub(r"[^a-z0-9]+", "_", tag.lower()).strip("_")
    return _KNOWN.get(plain) or ("score" if _SCORE.search(plain) else None)
