"""The obvious way to fold a run log, record by record, and logs to try it on."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ExchangeProbed,
    LossMeasured,
    RunFinished,
    RunStarted,
    StepFinished,
    TrainingStarted,
    Unknown,
)
from tandem.runlog.layout import RunLayout
from tandem.runlog.reader import ReadReport, read_records
from tandem.runlog.record import Record, to_line

BEGUN_NS = 1_767_225_600_000_000_000


@dataclass(slots=True, kw_only=True)
class Folded:
    """What stands at the end."""

    steps: dict[int, tuple[int, StepFinished]] = field(default_factory=dict)
    ranks: dict[int, dict[int, StepFinished]] = field(default_factory=dict)
    probes: dict[tuple[int, int], ExchangeProbed] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    redone: list[float] = field(default_factory=list)
    damaged: int = 0


def fold_slowly(run: Path) -> Folded:
    """Take every record in order of time; a start of training takes back what comes after its step."""
    report, folded = ReadReport(), Folded()
    for record in read_records(run, report):
        match record.event:
            case TrainingStarted(step=step):
                _go_back(folded, step)
            case StepFinished() as event if record.rank is not None:
                folded.ranks.setdefault(record.rank, {})[event.step] = event
                if record.rank == 0:
                    folded.steps[event.step] = (record.time_ns, event)
            case ExchangeProbed() as event if record.rank is not None:
                folded.probes[event.step, record.rank] = event
            case LossMeasured(step=step, set="valid") as event:
                folded.losses[step] = event.loss
    folded.damaged = report.damaged
    return folded


def _go_back(folded: Folded, to: int) -> None:
    folded.redone += [event.duration_s for step, (_, event) in folded.steps.items() if step > to]
    folded.steps = {step: held for step, held in folded.steps.items() if step <= to}
    folded.losses = {step: held for step, held in folded.losses.items() if step <= to}
    folded.probes = {key: held for key, held in folded.probes.items() if key[0] <= to}
    for rank, steps in folded.ranks.items():
        folded.ranks[rank] = {step: held for step, held in steps.items() if step <= to}


class LogMaker:
    """Writes a log with a random story: rounds of different sizes, all kinds of damage, all kinds of numbers."""

    def __init__(self, run: Path, seed: int) -> None:
        self._run, self._dice = run, random.Random(seed)
        self._lines: dict[int, list[bytes]] = {}
        self._at_s = 0.0

    def write(self) -> None:
        """Write the files of all ranks."""
        step = 0
        for number in range(self._dice.randint(1, 4)):
            back_to = self._dice.randint(max(0, step - 25), step) if number else 0
            step = self._round(back_to, back_to + self._dice.randint(0, 60), ranks=self._dice.randint(1, 4))
        for rank in self._lines:
            self.log(rank, RunFinished(reason="done"))
        RunLayout(self._run).log.mkdir(parents=True)
        for rank, lines in self._lines.items():
            end = self._dice.choice((b"", b'{"schema":1,"time'))
            RunLayout(self._run).rank_log(rank).write_bytes(b"".join(lines) + end)

    def log(self, rank: int, event: Event, *, schema: int = 1) -> None:
        """Append a record at the present moment."""
        lines = self._lines.setdefault(rank, [])
        time_ns = BEGUN_NS + int(1e9 * self._at_s) + rank
        record = Record(
            time_ns=time_ns, clock_s=self._at_s, rank=rank, sequence=len(lines), event=event, schema=schema
        )
        lines.append(to_line(record))

    def _round(self, back_to: int, stop: int, *, ranks: int) -> int:
        self._at_s += 3.0
        for rank in range(ranks):
            self.log(rank, build_process(ranks))
        self._at_s += 1.0
        self.log(0, build_start(back_to, ranks))
        for step in range(back_to + 1, stop + 1):
            self._at_s += 0.2
            self._one_step(step, ranks)
        return stop

    def _one_step(self, step: int, ranks: int) -> None:
        for rank in range(ranks):
            self.log(rank, self._build_step(step))
            if step % 7 == 0:
                self.log(
                    rank,
                    ExchangeProbed(
                        step=step, synchronised_s=self._seconds(), unsynchronised_s=0.1, exchange_s=0.05
                    ),
                )
            if self._dice.random() < 0.05:
                self._lines[rank].append(self._dice.choice(list(_strange(self._lines[rank][-1]))))
        if step % 10 == 0:
            self._evaluate(step)

    def _evaluate(self, step: int) -> None:
        self.log(0, EvaluationStarted(step=step))
        loss = self._dice.random()
        self.log(0, LossMeasured(step=step, set="valid", loss=loss, target_tokens=9, pairs=2, duration_s=0.1))
        self.log(0, EvaluationFinished(step=step, duration_s=0.2, is_best_loss=True, is_best_bleu=False))
        folder = f"checkpoints/step-{step:08d}"
        self.log(
            0,
            CheckpointWritten(step=step, folder=folder, bytes=7, blocked_s=0.1, write_s=0.2, files={"a": 7}),
        )

    def _seconds(self) -> float:
        value = self._dice.choice((0.2, 3e-5, 7e-7, 12.0, 1e-12, 123.456)) * self._dice.random()
        return round(value, 6) if self._dice.random() < 0.7 else value

    def _build_step(self, step: int) -> StepFinished:
        names = ("data", "forward", "backward", "exchange", "optimizer", "other")
        phases = {name: self._seconds() for name in names}
        if self._dice.random() < 0.02:
            del phases["exchange"]
        loss = self._dice.choice((9.5, 0.25, -1.0, math.nan, math.inf, 1e22, 7))
        return build_step(step, loss=loss * self._dice.random(), phases=phases)


def _strange(line: bytes) -> Iterator[bytes]:
    """What may stand between records: torn lines, spoilt ones, empty ones, lines of newer writers."""
    yield line[: len(line) // 2] + b"\n"
    yield line[:-2] + b"\n"
    yield b"\n"
    yield b"\xff\xfe" + line
    yield line.replace(b":", b"\0", 3)
    yield line.replace(b'"schema":1', b'"schema":2')
    yield line.replace(b'"event":"StepFinished"', b'"event":"StepDreamt"')
    yield line.replace(b'"duration_s":', b'"duration_s":"long","was":')
    yield b"[1, 2]\n"
    unknown = Unknown(kind="Novelty", fields={"step": 1})
    yield to_line(Record(time_ns=BEGUN_NS, clock_s=0.0, rank=0, sequence=0, event=unknown))


def build_process(ranks: int, host: str = "alpha") -> RunStarted:
    """The start of a process."""
    return RunStarted(
        run="first",
        tandem="0.1.0",
        command=("tandem",),
        recipe="00",
        world_size=ranks,
        host=host,
        python="3.11.9",
        torch="2.13.0",
    )


def build_start(step: int, ranks: int) -> TrainingStarted:
    """A start of training that goes on from a step."""
    return TrainingStarted(
        step=step,
        tokens=step * 9,
        resumed_from="",
        parameters=7,
        ranks=ranks,
        device="cpu",
        precision="fp32",
        layout="padded",
        source_capacity=9,
        target_capacity=9,
        updates_per_epoch=9,
        pairs=9,
        max_steps=99,
        schedule="constant",
        target_tokens_per_update=9,
    )


def build_step(step: int, *, loss: float = 2.5, phases: dict[str, float] | None = None) -> StepFinished:
    """A step whose numbers tell which one it is."""
    phases = {"data": 0.1, "forward": 0.2} if phases is None else phases
    return StepFinished(
        step=step,
        epoch=step // 9,
        loss=loss,
        nll=loss,
        learning_rate=1e-05 * step,
        gradient_norm=0.5,
        loss_scale=1.0,
        skipped=step % 11 == 0,
        target_tokens=1000 + step,
        source_tokens=900 + step,
        pairs=step,
        batches=2,
        duration_s=sum(phases.values()),
        phases=phases,
        split=0,
        sent_bytes=4 * step,
    )
