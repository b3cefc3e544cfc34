"""Where a run stands, folded from its records in bounded memory."""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from tandem.observe.delivered import Delivered, delivered
from tandem.observe.watch.anatomy import Anatomy
from tandem.observe.watch.curve import StepCurve
from tandem.observe.watch.hosts import WatchedHost
from tandem.observe.watch.recent import Recent
from tandem.observe.watch.troubles import Trouble, Troubles
from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ExchangeChosen,
    HostDescribed,
    HostExamined,
    HostSampled,
    LinkMeasured,
    LossMeasured,
    RoundStarted,
    RunFinished,
    RunImported,
    RunStarted,
    SampleTranslated,
    SharesChanged,
    StageStarted,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
    TranslationScored,
    WorkersLost,
)
from tandem.runlog.record import Record

__all__ = ["FAILED", "Doing", "Evaluation", "Spent", "WatchState"]

Doing = Literal["starting", "preparing", "training", "evaluating", "restarting", "finished", "imported"]

NANO = 1_000_000_000
FAILED = "failed"
"""Begins the reason of a rank or run that did not end well."""
HELD_EVALUATIONS = 1_000
HELD_SAMPLES = 8
HELD_CHECKPOINTS = 100


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """What is known of the model after a step; None where it was not measured."""

    step: int
    valid_loss: float | None = None
    probe_loss: float | None = None
    bleu: float | None = None
    chrf: float | None = None
    is_best_loss: bool = False
    """So far, when it was made."""
    is_best_bleu: bool = False
    duration_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Spent:
    """Seconds of a run, by what they were spent on."""

    training_s: float = 0.0
    evaluation_s: float = 0.0
    checkpoint_s: float = 0.0
    """In which training waited for a checkpoint."""
    redone_s: float = 0.0
    """Part of all this that a restart went back behind."""

    @property
    def total_s(self) -> float:
        """All of them."""
        return self.training_s + self.evaluation_s + self.checkpoint_s

    @property
    def kept_s(self) -> float:
        """Those by which training goes when its time is limited: what is redone does not count twice."""
        return self.total_s - self.redone_s


@dataclass(slots=True, kw_only=True)
class WatchState:
    """What the display shows; totals come from rank 0, whose counts are of all ranks."""

    run: str = ""
    """The name of its folder."""
    recipe: str = ""
    """The name that its recipe gives it."""
    imported: RunImported | None = None
    """Where another tool trained it: nothing comes after what was imported."""
    doing: Doing = "starting"
    stage: str = ""
    """Of data preparation."""
    started: TrainingStarted | None = None
    shares: SharesChanged | None = None
    """The parts of an update that ranks get; None where they have been equal since the last start."""
    ended: str = ""
    """Why the run ended; empty while it goes on."""
    is_closed: bool = False
    """Whether the run said good-bye: nothing comes after that."""
    is_supervised: bool = False
    """Whether a command watches over the ranks: it starts lost ones again, and has the last word."""
    attempt: int = 1
    """Which start of the ranks it is, counted from the command's own, or where another launcher starts them, of all."""
    step: int = 0
    epoch: int = 0
    tokens: int = 0
    last_time_ns: int = 0
    """Of the last record of a rank, or of what watches over the ranks: samplers go on while a run hangs."""
    begun_ns: int = 0
    """Of the first record of any writer."""
    heard_ns: int = 0
    """Of the last record of any writer."""
    spent: Spent = field(default_factory=Spent)
    recent: Recent = field(default_factory=Recent)
    anatomy: Anatomy = field(default_factory=Anatomy)
    """What the time of the last steps went into, as far as the steps of other ranks were taken too."""
    curve: StepCurve = field(default_factory=StepCurve)
    """The loss."""
    pace: StepCurve = field(default_factory=StepCurve)
    """Target tokens a second."""
    evaluations: deque[Evaluation] = field(default_factory=lambda: deque(maxlen=HELD_EVALUATIONS))
    samples: list[SampleTranslated] = field(default_factory=list)
    """Of the last evaluation that had some."""
    troubles: Troubles = field(default_factory=Troubles)
    hosts: dict[str, WatchedHost] = field(default_factory=dict)
    """Those that are sampled, by name."""
    links: dict[tuple[str, str], LinkMeasured] = field(default_factory=dict)
    """As measured last, by sender and receiver."""
    exchange: ExchangeChosen | None = None
    """How hosts exchange gradients, as far as it was said since training began."""
    examined: dict[str, HostExamined] = field(default_factory=dict)
    """Hosts as they were looked at before training, by name."""
    _has_begun: bool = False
    """Whether rank 0 has been started before."""
    _kept_s: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    """What was spent up to the last checkpoints, by their steps."""

    def apply(self, record: Record) -> Trouble | None:
        """Take the next record; returns the trouble that it told of."""
        self.begun_ns = min(self.begun_ns or record.time_ns, record.time_ns)
        self.heard_ns = max(self.heard_ns, record.time_ns)
        if isinstance(record.event, HostDescribed | HostSampled):
            self._take_host(record.host or "", record.event, time_ns=record.time_ns)
            return None
        self.last_time_ns = max(self.last_time_ns, record.time_ns)
        if record.rank and isinstance(record.event, StepFinished):
            self.anatomy.add(record.rank, record.event)
        if record.rank in (None, 0):
            self._apply(record.event, is_rank=record.rank == 0)
        return self.troubles.apply(record)

    @property
    def wall_s(self) -> float:
        """From the first record of any log to the last, pauses and all."""
        return (self.heard_ns - self.begun_ns) / NANO

    def best(self, score: Literal["loss", "bleu"]) -> Evaluation | None:
        """The evaluation that is the best so far."""
        return next((each for each in reversed(self.evaluations) if getattr(each, f"is_best_{score}")), None)

    def delivered(self, host: WatchedHost, interface: int) -> Delivered | None:
        """What the link behind an interface of a host was seen to carry."""
        return delivered(
            host.name,
            host.described.interfaces[interface],
            links=self.links.values(),
            examined=self.examined.values(),
            highest_bytes_per_s=host.highest_bytes_per_s[interface] if host.highest_bytes_per_s else 0.0,
            is_busiest=host.busiest == interface,
        )

    def _apply(self, event: Event, *, is_rank: bool) -> None:
        match event:
            case RunStarted() | RunFinished():
                self._take_bounds(event, is_rank=is_rank)
            case StepFinished():
                self._take_step(event)
            case EvaluationStarted() | EvaluationFinished():
                self._take_evaluation(event)
            case LossMeasured() | TranslationScored() | SampleTranslated():
                self._take_measurement(event)
            case CheckpointWritten():
                self.spent.checkpoint_s += _finite(event.blocked_s)
                self._kept_s[event.step] = self.spent.kept_s
                if len(self._kept_s) > HELD_CHECKPOINTS:
                    self._kept_s.pop(min(self._kept_s))
            case TrainingStarted():
                self._take_start(event)
            case LinkMeasured():
                self.links[event.sender, event.receiver] = event
            case HostExamined():
                self.examined[event.host] = event
            case _:
                self._take_life(event)

    def _take_host(self, name: str, event: HostDescribed | HostSampled, *, time_ns: int) -> None:
        held = self.hosts.get(name)
        if isinstance(event, HostDescribed):
            if held is None or held.described != event:
                self.hosts[name] = WatchedHost(name=name, described=event)
        elif held is not None:
            held.add(time_ns, event)

    def _take_life(self, event: Event) -> None:
        match event:
            case RunImported():
                self.imported, self.doing, self.is_closed = event, "imported", True
            case ExchangeChosen():
                self.exchange = event
            case StageStarted():
                self.stage = event.stage
                self._turn_to("preparing")
            case WorkersLost():
                self._begin("restarting")
                self.attempt = max(self.attempt, event.attempt + 1)
            case SharesChanged():
                self.shares = event
            case RoundStarted():
                self.attempt = max(self.attempt, event.round)
            case TrainingFinished():
                self.ended = event.reason
                self._turn_to("finished")

    def _take_bounds(self, event: RunStarted | RunFinished, *, is_rank: bool) -> None:
        """A process of the run began or ended: a rank, or what watches over the ranks."""
        if isinstance(event, RunStarted):
            was_alone = self._has_begun and not self.is_supervised
            # A rank that begins after the command has ended was started by another launcher.
            self.is_supervised = not is_rank or (self.is_supervised and not self.is_closed)
            if not self.is_supervised:
                self.attempt = self.attempt + 1 if was_alone else 1
            elif not is_rank:
                self.attempt = 1
            self._has_begun |= is_rank
            self.recipe = event.run
            self._begin("starting")
        elif is_rank and self.is_supervised:
            # It may be started again: whether the run has ended, the command says that watches over it.
            self.ended = self.ended or event.reason
            self._turn_to("restarting" if event.reason.startswith(FAILED) else "finished")
        else:
            self.is_closed, self.ended = True, self.ended or event.reason
            self._turn_to("finished")

    def _turn_to(self, doing: Doing) -> None:
        """Do this from here on; an imported run does nothing any more."""
        if self.imported is None:
            self.doing = doing

    def _begin(self, doing: Doing) -> None:
        self._turn_to(doing)
        self.ended, self.is_closed = "", self.imported is not None

    def _take_start(self, event: TrainingStarted) -> None:
        self.started, self.exchange, self.shares = event, None, None
        self._begin("training")
        self._go_back(event.step)
        self.tokens = event.tokens
        self.spent.redone_s += self.spent.kept_s - self._kept_s.get(event.step, self.spent.kept_s)

    def _take_step(self, event: StepFinished) -> None:
        # Other tools number their first step 0.
        is_first = self.recent.last is None and event.step == self.step
        if event.step <= self.step and not is_first:
            self._go_back(event.step - 1)
        self.move_on(event.step, epoch=event.epoch)
        self.spent.training_s += _finite(event.duration_s)
        self.recent.add(event)
        self.tokens += event.target_tokens
        if not event.skipped:
            # Steps of other tools may have no count of tokens.
            self.curve.add(event.step, event.loss, weight=event.target_tokens or 1)
        if event.duration_s > 0:
            self.pace.add(event.step, event.target_tokens / event.duration_s, weight=event.duration_s)

    def move_on(self, step: int, *, epoch: int) -> None:
        """Be at this step, which was made."""
        # The last steps before an evaluation, or before the end, are told of after it has begun.
        looked_at = self.evaluations[-1].step if self.evaluations and self.doing == "evaluating" else 0
        if not self.ended and step > looked_at:
            self._turn_to("training")
        self.step, self.epoch = step, epoch

    def _take_evaluation(self, event: EvaluationStarted | EvaluationFinished) -> None:
        if isinstance(event, EvaluationStarted):
            self._turn_to("evaluating")
            # One that is made again is made anew.
            if self.evaluations and self.evaluations[-1].step == event.step:
                self.evaluations.pop()
            self._evaluation(event.step)
            return
        held = self._evaluation(event.step)
        self._turn_to("finished" if self.ended else "training")
        held.duration_s = _finite(event.duration_s)
        self.spent.evaluation_s += held.duration_s
        held.is_best_loss, held.is_best_bleu = event.is_best_loss, event.is_best_bleu

    def _take_measurement(self, event: LossMeasured | TranslationScored | SampleTranslated) -> None:
        held = self._evaluation(event.step)
        match event:
            case LossMeasured(set="valid"):
                held.valid_loss = event.loss
            case LossMeasured(set="probe"):
                held.probe_loss = event.loss
            case TranslationScored(set="valid"):
                held.bleu, held.chrf = event.bleu, event.chrf
            case SampleTranslated():
                same = [each for each in self.samples if each.step == event.step]
                self.samples = [*same, event][:HELD_SAMPLES]

    def _evaluation(self, step: int) -> Evaluation:
        if not self.evaluations or self.evaluations[-1].step != step:
            self.evaluations.append(Evaluation(step=step))
        return self.evaluations[-1]

    def _go_back(self, step: int) -> None:
        """Forget what a run that goes on from an earlier step will do again."""
        self.step = step
        self.recent.clear()
        self.anatomy.clear()
        self.curve.cut(step)
        self.pace.cut(step)
        while self.evaluations and self.evaluations[-1].step > step:
            self.evaluations.pop()


def _finite(seconds: float) -> float:
    """Other tools do not say how long everything took."""
    return seconds if math.isfinite(seconds) else 0.0
