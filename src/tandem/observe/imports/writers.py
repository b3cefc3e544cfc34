"""Who wrote a curve: training, its evaluations, or another run in the same folder, which is refused."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import TypeAlias

from tandem.errors import TandemError
from tandem.observe.imports.named import Named
from tandem.observe.visible import visible

__all__ = ["settle_writers"]

_EVALUATIONS = frozenset({"eval", "valid", "validation", "val", "dev", "test"})
_TEST = "test"
_NAMED_EVALUATION = "eval_"
"""TensorFlow's name of an evaluation follows it, in a folder right below that of training."""
_TRAININGS = ("train", "training", "train_inner")
_MEANS, _OFTEN = "train", "train_inner"
"""fairseq writes means over whole epochs under the first, and what it prints now and then under the second."""
_SHOWN = 6

_Parts: TypeAlias = tuple[str, ...]


def settle_writers(points: Sequence[Named], *, folder: Path) -> list[Named]:
    """The points of one run, by what their writers are; raises where several runs lie in the folder."""
    trained = {_parts(point.writer) for point in points if point.kind == "train_loss"}
    writers = {point.writer for point in points}
    evaluating = {writer for writer in writers if _evaluates(_parts(writer), trained)}
    tests = {writer for writer in evaluating if _TEST in _parts(writer)}
    # Losses on two sets are no single curve: that of the set which is looked at during training stays.
    left_out = tests if evaluating - tests else set()
    averaging = {writer for writer in writers if _averages(_parts(writer), trained)}
    kept = [point for point in points if point.writer not in left_out]
    settled = list(_settled(kept, evaluating=evaluating, judging=evaluating | averaging))
    _refuse_several(settled, folder=folder)
    return settled


def _parts(writer: str) -> _Parts:
    return PurePath(writer.lower()).parts


def _evaluates(parts: _Parts, trained: set[_Parts]) -> bool:
    """Whether it has the name of an evaluation, and training is written above or beside it."""
    for place, part in enumerate(parts):
        above, below = parts[:place], parts[place + 1 :]
        if part in _EVALUATIONS and any((*above, name, *below) in trained for name in _TRAININGS):
            return True
        if (part in _EVALUATIONS or part.startswith(_NAMED_EVALUATION)) and above in trained:
            return True
    return False


def _averages(parts: _Parts, trained: set[_Parts]) -> bool:
    return parts[-1:] == (_MEANS,) and (*parts[:-1], _OFTEN) in trained


def _settled(points: Sequence[Named], *, evaluating: set[str], judging: set[str]) -> Iterator[Named]:
    for point in points:
        # A writer of evaluations uses the same tags as training.
        if point.writer in evaluating and point.kind == "train_loss":
            yield replace(point, kind="eval_loss")
        elif point.is_judgement or point.writer not in judging:
            yield point


@dataclass(slots=True, kw_only=True)
class _Span:
    """From where to where one writer has a curve."""

    writer: str
    begin_s: float = math.inf
    end_s: float = -math.inf
    steps: set[int] = field(default_factory=set)

    def add(self, point: Named) -> None:
        """Reach to this point too."""
        self.begin_s, self.end_s = min(self.begin_s, point.wall_s), max(self.end_s, point.wall_s)
        self.steps.add(point.step)

    def goes_on_from(self, before: "_Span") -> bool:
        """Whether it can be the same run after a restart: later, and not begun anew."""
        first, start = min(self.steps), min(before.steps)
        if self.begin_s < before.end_s:
            return False
        # What begins anew has its first point about one interval after step 0.
        is_resumed = first > start and first > 2 * self._interval()
        return first > max(before.steps) or is_resumed

    def _interval(self) -> float:
        if len(self.steps) < 2:
            return math.inf
        return (max(self.steps) - min(self.steps)) / (len(self.steps) - 1)


def _refuse_several(points: Sequence[Named], *, folder: Path) -> None:
    spans: dict[str, dict[str, _Span]] = {}
    tags: dict[str, str] = {}
    for point in points:
        if not point.is_judgement:
            tags.setdefault(point.kind, point.tag)
            of_kind = spans.setdefault(point.kind, {})
            of_kind.setdefault(point.writer, _Span(writer=point.writer)).add(point)
    for kind, of_kind in spans.items():
        ordered = sorted(of_kind.values(), key=lambda span: span.begin_s)
        if not all(after.goes_on_from(before) for before, after in pairwise(ordered)):
            names = [visible(str(folder / span.writer)) for span in ordered]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise TandemError(
                f"{visible(str(folder))} holds several runs ({', '.join(names[:_SHOWN])}{more} each have their "
                f"own {visible(tags[kind])}): name one of them, or one event file."
            )
