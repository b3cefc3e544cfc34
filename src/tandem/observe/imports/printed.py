"""What OpenSeq2Seq printed while it trained, in order: starts, steps, evaluations, checkpoints, the end."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from tandem.observe.imports.console import Line

__all__ = ["Begun", "Ended", "Evaluated", "Printed", "Saved", "Story", "read_story", "segments"]

_LOSS = r"(-?\d{1,12}\.\d{4}(?!\d)|nan|-?inf)"
_TOKEN = re.compile(
    rf"""(?:[Ee]poch\ (?P<epoch>\d{{1,9}}),\ )?[Gg]lobal\ step\ (?P<step>\d{{1,9}}):
    |(?P<evaluation>Running\ evaluation\ on\ a\ validation\ set)
    |Validation\ loss:\ {_LOSS.replace("(", "(?P<valid>", 1)}
    |\b[Ll]oss(?::|\ =)\ {_LOSS.replace("(", "(?P<loss>", 1)}
    |time\ per\ step\ =\ (?P<hours>\d{{1,3}}):(?P<minutes>\d\d):(?P<seconds>\d{{1,2}}\.\d{{3}})(?!\d)
    |Eval\ (?:BLUE|BLEU)\ score:\ (?P<score>\d{{1,3}}(?:\.\d{{1,20}})?(?:e-?\d{{1,2}})?)\s*$
    |Starting\ training\ from\ (?P<fresh>scratch|the\ base\ model)
    |Restored\ checkpoint\ from\ (?P<restored>\S{{1,1000}}?)\.?\ Resuming
    |Saving\ checkpoints\ for\ (?:step\ )?(?P<saved>\d{{1,9}})\ into\ (?P<path>\S{{1,1000}}?)\.?\s*$
    |(?P<ended>Finished\ training)""",
    re.VERBOSE,
)
# What follows is text of the corpus, which may say anything.
_SAMPLE = re.compile(r"(?:Train|EVAL) (?:Source|Target|Prediction)\[|(?:Input|Output) sequence: ")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}): [IWEF] ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The tool began to train."""

    resumed_from: str
    """Checkpoint that it went on from; empty where it began anew."""
    is_told: bool = True
    """False where only the numbers of the steps give it away, or the log has lost its head."""
    time_s: float = math.nan
    """First time of day that follows, in seconds since 1970 as if the host's clock showed UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A line about a step, counted from 0."""

    step: int
    epoch: int
    loss: float
    mean_s: float
    """Wall time since the line before, by the number of steps between two lines; nan where it is missing."""


@dataclass(slots=True, kw_only=True)
class Evaluated:
    """An evaluation, whose step the tool does not print."""

    loss: float = math.nan
    score: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A checkpoint was written."""

    step: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The tool says that training is over."""


Item: TypeAlias = Begun | Printed | Evaluated | Saved | Ended


@dataclass(slots=True, kw_only=True)
class Story:
    """All that was printed about training."""

    items: list[Item] = field(default_factory=list)
    repeated: int = 0
    """Lines that were in the log a second time."""


def read_story(lines: Iterable[Line], *, also: Callable[[str], None]) -> Story:
    """Take the lines about training; every line, without samples, is given to `also` too."""
    reading = _Reading()
    for line in lines:
        sample = _SAMPLE.search(line.text)
        text = line.text[: sample.start()] if sample else line.text
        also(text)
        reading.take(text, rank=line.rank)
    reading.close_step()
    return reading.story


class _Reading:
    """Puts the pieces of a step together, which may stand on several lines."""

    def __init__(self) -> None:
        self.story = Story()
        self._step: int | None = None
        self._epoch = 0
        self._loss = math.nan
        self._seen: set[tuple[int, str, str]] = set()
        self._teller: int | None = None
        self._last_step = -1

    def take(self, text: str, *, rank: int | None) -> None:
        """Take what one line says."""
        if found := _TIME.match(text):
            self._stamp(found[1])
        for token in _TOKEN.finditer(text):
            # Only the first rank has more to say than that it began.
            if rank is not None and self._teller is None and token["step"]:
                self._teller = rank
            if rank is None or self._teller in {None, rank}:
                self._tell(token)

    def close_step(self, mean_s: float = math.nan) -> None:
        """The step at hand is told, or nothing more will be said of it."""
        step, self._step = self._step, None
        if step is None or (math.isnan(mean_s) and math.isnan(self._loss)):
            return
        told = (step, str(self._loss), str(mean_s))
        if told in self._seen:
            self.story.repeated += 1
            return
        self._seen.add(told)
        if step <= self._last_step:
            self._begin_unsaid()
        self._last_step = step
        self._append(Printed(step=step, epoch=self._epoch, loss=self._loss, mean_s=mean_s))

    def _tell(self, token: re.Match[str]) -> None:
        if token["step"]:
            self.close_step()
            self._step, self._epoch, self._loss = int(token["step"]), int(token["epoch"] or 0), math.nan
        elif token["loss"]:
            self._loss = float(token["loss"])
        elif token["seconds"]:
            hours, minutes, seconds = int(token["hours"]), int(token["minutes"]), float(token["seconds"])
            self.close_step(hours * 3600 + minutes * 60 + seconds)
        else:
            self.close_step()
            self._tell_rest(token)

    def _tell_rest(self, token: re.Match[str]) -> None:
        if token["evaluation"]:
            self._evaluate()
        elif token["valid"]:
            self._measure(float(token["valid"]))
        elif token["score"]:
            last = self._last_evaluation()
            if last is not None and math.isnan(last.score):
                last.score = float(token["score"])
        elif token["fresh"] or token["restored"]:
            self._begin(token["restored"] or "")
        elif token["saved"]:
            self._append(Saved(step=int(token["saved"]), path=token["path"]))
        elif token["ended"]:
            self._append(Ended())

    def _begin(self, resumed_from: str) -> None:
        if self._is_fresh():
            self.story.items.pop()
        self._append(Begun(resumed_from=resumed_from))

    def _begin_unsaid(self) -> None:
        """Steps went back: training was started again, and the first thing it did was to evaluate."""
        items = self.story.items
        place = len(items) - isinstance(items[-1], Evaluated)
        if not isinstance(items[place - 1], Begun):
            items.insert(place, Begun(resumed_from="", is_told=False))

    def _is_fresh(self) -> bool:
        """Whether nothing was told since the last start."""
        return bool(self.story.items) and isinstance(self.story.items[-1], Begun)

    def _evaluate(self) -> None:
        last = self._last_evaluation()
        if last is None or not math.isnan(last.loss):
            self._append(Evaluated())

    def _measure(self, loss: float) -> None:
        last = self._last_evaluation()
        if last is not None and math.isnan(last.loss):
            before = self.story.items[-2] if len(self.story.items) > 1 else None
            if isinstance(before, Evaluated) and before.loss == loss:
                # The whole evaluation was printed again, with the line that begins it.
                self.story.items.pop()
                self.story.repeated += 1
                return
            last.loss = loss
        elif last is not None and last.loss == loss:
            self.story.repeated += 1
        else:
            self._append(Evaluated(loss=loss))

    def _last_evaluation(self) -> Evaluated | None:
        last = self.story.items[-1] if self.story.items else None
        return last if isinstance(last, Evaluated) else None

    def _append(self, item: Item) -> None:
        if not self.story.items and not isinstance(item, Begun):
            self.story.items.append(Begun(resumed_from="", is_told=False))
        self.story.items.append(item)

    def _stamp(self, text: str) -> None:
        """A time of day after a start and before its first step tells when it was."""
        if not self._is_fresh():
            return
        begun = self.story.items[-1]
        try:
            time_s = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        except ValueError:
            return
        if isinstance(begun, Begun) and math.isnan(begun.time_s):
            self.story.items[-1] = Begun(
                resumed_from=begun.resumed_from, is_told=begun.is_told, time_s=time_s
            )


def segments(story: Story) -> list[tuple[Begun, list[Item]]]:
    """The story in parts, each from a start to the next; parts that tell nothing new are left out."""
    parts: list[tuple[Begun, list[Item]]] = []
    for item in story.items:
        if isinstance(item, Begun):
            parts.append((item, []))
        else:
            parts[-1][1].append(item)
    told: set[float] = set()
    return [(begun, items) for begun, items in parts if _is_new(items, told)]


def _is_new(items: list[Item], told: set[float]) -> bool:
    """A log that was printed twice repeats its evaluations, and none of its steps is left."""
    losses = [item.loss for item in items if isinstance(item, Evaluated) and not math.isnan(item.loss)]
    has_steps = any(isinstance(item, Printed) for item in items)
    is_new = has_steps or not told.issuperset(losses)
    told.update(losses)
    return is_new
