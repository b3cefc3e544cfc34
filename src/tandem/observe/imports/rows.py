"""The points of TensorBoard's curves as events: one step for all points of a step, evaluations, restarts."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tandem.observe.imports.curves import Curves
from tandem.observe.imports.named import Named
from tandem.observe.imports.plain import plain_start, plain_step
from tandem.observe.imports.timeline import SCORE_MEANING, Timed
from tandem.observe.series.columns import PHASES
from tandem.runlog.event import Event, LossMeasured, ScoreImported, StepFinished

__all__ = ["tell_curves"]

_UNKNOWN_SCORE = "as its tool computes it; how that is, the file does not say"
_SETS = {"eval_loss": "valid", "probe_loss": "probe"}


@dataclass(slots=True, kw_only=True)
class _Row:
    """All that is known of one step."""

    wall_s: float
    values: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Part:
    """From a start of training to the next."""

    rows: dict[int, _Row] = field(default_factory=dict)
    others: list[Named] = field(default_factory=list)


def tell_curves(curves: Curves) -> Iterator[Timed]:
    """Events with their wall times, in order."""
    for part in _parts(curves):
        timed = [*_steps(part), *((point.wall_s, _judged(point)) for point in part.others)]
        timed.sort(key=lambda each: each[0])
        if timed:
            first = min(part.rows, default=0)
            yield timed[0][0], plain_start(step=max(0, first - 1))
            yield from timed


def _parts(curves: Curves) -> list[_Part]:
    """Training was begun again where a file goes back, or a file begins after the ones before it have ended."""
    ends = {point.file: point.wall_s for point in curves.points}
    parts, place = [_Part()], _Place(begins=curves.begins, ends=ends)
    for point in curves.points:
        if point.is_judgement:
            parts[-1].others.append(point)
            continue
        if place.is_left_by(point):
            parts.append(_Part())
            place = _Place(begins=curves.begins, ends=ends)
        place.take(point)
        row = parts[-1].rows.setdefault(point.step, _Row(wall_s=point.wall_s))
        row.wall_s = max(row.wall_s, point.wall_s)
        row.values[point.kind] = point.value
    return parts


@dataclass(slots=True, kw_only=True)
class _Place:
    """How far the files of a part have come."""

    begins: Mapping[str, float]
    """When each file was made, which is before its first point; ranks make theirs together."""
    ends: Mapping[str, float]
    """Time of the last point of each file."""
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    """Step, by file and tag."""
    files: dict[str, set[str]] = field(default_factory=dict)
    """That have written something of a kind; several at a time where each rank writes one."""

    def is_left_by(self, point: Named) -> bool:
        """Whether this point is of another start of training."""
        known = self.files.get(point.kind, set())
        if point.file in known:
            return point.step < self.last.get((point.file, point.tag), -1)
        begin_s = self.begins.get(point.file) or point.wall_s
        return bool(known) and all(self.ends[file] < begin_s for file in known)

    def take(self, point: Named) -> None:
        """Go on to this point."""
        self.last[point.file, point.tag] = point.step
        self.files.setdefault(point.kind, set()).add(point.file)


def _steps(part: _Part) -> Iterator[tuple[float, StepFinished]]:
    pauses = [point.wall_s for point in part.others]
    before: tuple[int, float] | None = None
    for step in sorted(part.rows):
        row = part.rows[step]
        yield (
            row.wall_s,
            _step(step, row.values, duration_s=_duration(step, row, before=before, pauses=pauses)),
        )
        before = (step, row.wall_s)


def _duration(step: int, row: _Row, *, before: tuple[int, float] | None, pauses: Sequence[float]) -> float:
    """Of one step, the mean since the row before; nan where an evaluation is in between or nothing tells."""
    rate = row.values.get("steps_per_second", math.nan)
    # Tandem's own rate leaves evaluations out; TensorFlow's is of the wall clock.
    if any(name.startswith("phase/") for name in row.values) and rate > 0:
        return 1 / rate
    if before is None or row.wall_s <= before[1]:
        return math.nan
    if bisect_right(pauses, before[1]) < bisect_right(pauses, row.wall_s):
        return math.nan
    return 1 / rate if rate > 0 else (row.wall_s - before[1]) / (step - before[0])


def _step(step: int, values: dict[str, float], *, duration_s: float) -> StepFinished:
    tokens = values.get("target_tokens_per_second", math.nan) * duration_s
    return plain_step(
        step=step,
        loss=values.get("train_loss", math.nan),
        nll=values.get("train_nll", math.nan),
        learning_rate=values.get("learning_rate", math.nan),
        gradient_norm=values.get("global_gradient_norm", math.nan),
        loss_scale=values.get("loss_scale", math.nan),
        target_tokens=round(tokens) if math.isfinite(tokens) else 0,
        duration_s=duration_s,
        phases={name: values[f"phase/{name}"] for name in PHASES if f"phase/{name}" in values},
    )


def _judged(point: Named) -> Event:
    if point.kind == "score":
        meaning = SCORE_MEANING if point.tag == "Eval_BLEU_Score" else _UNKNOWN_SCORE
        return ScoreImported(step=point.step, set="valid", name=point.tag, value=point.value, meaning=meaning)
    return LossMeasured(
        step=point.step,
        set=_SETS[point.kind],
        loss=point.value,
        target_tokens=0,
        pairs=0,
        duration_s=math.nan,
    )
