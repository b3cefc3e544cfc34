"""The named numbers of a run's training, record by record: the same for every tool that draws curves."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.observe.sinks.window import StepWindow
from tandem.runlog.event import LossMeasured, StepFinished, TrainingStarted, TranslationScored
from tandem.runlog.record import Record

__all__ = ["Curves", "Point"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Numbers by name, after a step."""

    time_ns: int
    step: int
    numbers: Mapping[str, float]


class Curves:
    """Takes the records of rank 0 and gives points; steps are gathered into windows."""

    def __init__(self) -> None:
        self._window = StepWindow()
        self._step_ns = 0

    def take(self, record: Record) -> list[Point]:
        """What is known with this record: earlier steps go first, and what is left of them before a restart."""
        match record.event:
            case StepFinished() as event:
                self._step_ns = record.time_ns
                return self.rest() if self._window.add(event) else []
            case TrainingStarted():
                return self.rest()
            case LossMeasured(step=step, set=name, loss=loss):
                numbers = {"eval_loss" if name == "valid" else f"{name}_loss": loss}
            case TranslationScored(step=step, set=name, bleu=bleu, chrf=chrf):
                end = "" if name == "valid" else f"/{name}"
                numbers = {f"BLEU{end}": bleu, f"chrF{end}": chrf}
            case _:
                return []
        return [*self.rest(), Point(time_ns=record.time_ns, step=step, numbers=numbers)]

    def rest(self) -> list[Point]:
        """The steps of the window that is not full yet."""
        gathered = self._window.take()
        if gathered is None:
            return []
        step, numbers = gathered
        return [Point(time_ns=self._step_ns, step=step, numbers=numbers)]
