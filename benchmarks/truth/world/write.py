"""Writes a history as the folder of a run, with its clocks and with what is lost of its log."""

from dataclasses import dataclass, field
from math import nan
from pathlib import Path

import numpy as np
from benchmarks.truth.world import announce
from benchmarks.truth.world.damage import spoil
from benchmarks.truth.world.history import Attempt, History, simulate
from benchmarks.truth.world.samples import describe_host, sample_host
from benchmarks.truth.world.timing import host_of_rank
from benchmarks.truth.world.world import World
from numpy.typing import NDArray

from tandem.runlog.event import Event, ExchangeProbed
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

__all__ = ["LogFiles", "write", "write_history"]

_EPOCH_NS = 1_767_225_600_000_000_000
_GPU_LAG = 2


@dataclass(slots=True)
class LogFile:
    """The records of one file: true times, and events or the bodies of their lines."""

    host: int
    rank: int | None
    name: str
    """Of the host, where no rank wrote it."""
    times: list[float] = field(default_factory=list)
    bodies: list[Event | str] = field(default_factory=list)

    def add(self, time_s: float, body: Event | str) -> None:
        """Note a record."""
        self.times.append(time_s)
        self.bodies.append(body)


class LogFiles:
    """The files of a run's log by their paths."""

    def __init__(self, layout: RunLayout, world: World) -> None:
        self._layout, self._world = layout, world
        self.files: dict[Path, LogFile] = {}

    def rank(self, rank: int, host: int) -> LogFile:
        """The log of a rank, which may have been on another host in an earlier start."""
        return self.files.setdefault(self._layout.rank_log(rank), LogFile(host, rank, ""))

    def host(self, host: int) -> LogFile:
        """The log of what watches over a host."""
        name = self._world.cluster.hosts[host]
        return self.files.setdefault(self._layout.host_log(name), LogFile(host, None, name))

    def samples(self, host: int) -> LogFile:
        """The log of a host's sampler."""
        name = self._world.cluster.hosts[host]
        return self.files.setdefault(self._layout.samples_log(name), LogFile(host, None, name))


def write(world: World, folder: Path) -> History:
    """Play the run and write its folder; returns the history."""
    history = simulate(world)
    write_history(history, folder)
    return history


def write_history(history: History, folder: Path) -> None:
    """Write the folder of a run that was played."""
    layout, world = RunLayout(folder), history.world
    layout.log.mkdir(parents=True)
    logs = LogFiles(layout, world)
    rng = np.random.default_rng([world.seed, 4])
    for number, attempt in enumerate(history.attempts):
        announce.announce(history, number, logs)
        _log_steps(history, attempt, logs)
        _log_pauses(history, attempt, logs)
        announce.part(history, number, logs)
        _log_samples(history, attempt, logs, rng)
    if world.evidence.has_recipe:
        (folder / "recipe.yaml").write_text(_recipe(world), encoding="utf-8")
    for path, file in logs.files.items():
        lines = _lines(history, file)
        lines = spoil(history, file.rank, file.times, lines)
        if lines:
            path.write_bytes(b"".join(lines))


def _recipe(world: World) -> str:
    """As much of the resolved recipe as a reader may want to know."""
    training, pauses, evidence = world.training, world.pauses, world.evidence
    return (
        f"name: world-{world.seed}\n"
        f"batch:\n  target_tokens: {world.model.tokens_per_update}\n"
        f"optim:\n  schedule: {training.schedule}\n  learning_rate: {training.learning_rate!r}\n"
        f"  warmup_steps: {training.warmup}\n  cooldown_steps: {training.cooldown}\n"
        f"  ema_decay: {0.999 if world.model.has_averages else 0.0}\n"
        f"train:\n  max_steps: {world.starts[-1].max_steps}\n"
        f"evaluate:\n  every_steps: {pauses.evaluate_every or 'null'}\n  sentences: {evidence.sentences}\n"
        f"telemetry:\n  sample_seconds: {evidence.sample_s or 'null'}\n"
    )


def _lines(history: History, file: LogFile) -> list[bytes]:
    """The records in order of time, as lines with the clocks of their host."""
    order = np.argsort(np.array(file.times), kind="stable")
    times = np.array(file.times)[order]
    file.times = times.tolist()
    wall, clock = host_clocks(history, file.host, times)
    lines = []
    who = f'"host":"{file.name}"' if file.rank is None else f'"rank":{file.rank}'
    for sequence, (at, time_ns, clock_s) in enumerate(
        zip(order.tolist(), wall.tolist(), clock.tolist(), strict=True)
    ):
        body = file.bodies[at]
        if isinstance(body, str):
            line = f'{{"schema":1,"time_ns":{time_ns},"clock_s":{clock_s:.6f},{who},"sequence":{sequence},{body}}}\n'
            lines.append(line.encode())
            continue
        record = Record(
            time_ns=time_ns,
            clock_s=clock_s,
            rank=file.rank,
            host=None if file.rank is not None else file.name,
            sequence=sequence,
            event=body,
        )
        lines.append(to_line(record))
    return lines


def host_clocks(
    history: History, host: int, times: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What the wall clock and the monotonic clock of a host say at true times."""
    clocks = history.world.clocks
    drifted = times * (1 + clocks.drift[host])
    seconds = drifted + clocks.offset_s[host]
    if clocks.jump is not None and clocks.jump[0] == host:
        _, share, by = clocks.jump
        seconds = seconds + by * (times > share * history.wall_s)
    return _EPOCH_NS + (seconds * 1e9).astype(np.int64), drifted + 1000.0 * (host + 1)


def _log_steps(history: History, attempt: Attempt, logs: LogFiles) -> None:
    world, timing = history.world, attempt.timing
    heads = _heads(history, attempt)
    hosts = host_of_rank(attempt.start.workers)
    lag = _GPU_LAG if world.cluster.has_gpus else 0
    sent = (
        world.model.gradient_bytes + 64
        if attempt.start.ranks > 1 and world.evidence.has_gradient_bytes
        else 0
    )
    drained = _drained(attempt, lag)
    last_s = attempt.end_s - 0.4 if attempt.is_killed else np.inf
    for rank in range(attempt.start.ranks):
        file = logs.rank(rank, int(hosts[rank]))
        phases = np.stack(
            [timing.data[:, rank], timing.forward[:, rank], timing.backward[:, rank], timing.exchange[:, rank],
             timing.optimizer[:, rank], timing.other[:, rank]], axis=1
        )  # fmt: skip
        rows = phases.tolist()
        ends = timing.end[:, rank]
        for k, (head, (data, forward, backward, exchange, optimizer, other)) in enumerate(
            zip(heads, rows, strict=True)
        ):
            read = drained[k]
            time_s = float(ends[read]) if read < len(ends) else np.inf
            if time_s > last_s:
                break
            total = data + forward + backward + exchange + optimizer + other
            file.add(
                time_s + 1e-5 * (lag - read + k),
                f'{head}"duration_s":{total:.6f},"phases":{{"data":{data:.6f},"forward":{forward:.6f},'
                f'"backward":{backward:.6f},"exchange":{exchange:.6f},"optimizer":{optimizer:.6f},'
                f'"other":{other:.6f}}},"split":0,"sent_bytes":{sent}}}',
            )
            if timing.probed[k]:
                file.add(time_s + 1e-5 * (lag - read + k) + 4e-6, _probe(attempt, k, rank))


def _drained(attempt: Attempt, lag: int) -> list[int]:
    """Index of the step at whose end a step's numbers are read: a little late, but before each pause."""
    count = len(attempt.timing.end)
    if not lag:
        return list(range(count))
    steps = [*(item.step for item in attempt.evaluations), *(item.step for item in attempt.checkpoints)]
    pauses = {step - attempt.first_step for step in steps}
    if not attempt.is_killed:
        pauses.add(count - 1)
    read = []
    for k in range(count):
        stops = [later for later in range(k, min(k + lag, count)) if later in pauses]
        read.append(stops[0] if stops else k + lag)
    return read


def _probe(attempt: Attempt, k: int, rank: int) -> Event:
    timing = attempt.timing
    return ExchangeProbed(
        step=attempt.first_step + k,
        synchronised_s=round(float(timing.synchronised[k, rank]), 6),
        unsynchronised_s=round(float(timing.unsynchronised[k, rank]), 6),
        exchange_s=round(float(timing.exchange[k, rank]), 6),
    )


def _heads(history: History, attempt: Attempt) -> list[str]:
    """The part of each step's line that is the same on all ranks."""
    world, first, last = history.world, attempt.first_step, attempt.start.last_step
    at = slice(first - 1, last)
    nll = history.nll[at]
    smoothed = 0.9 * nll + 0.1 * 1.25 * np.log(world.model.vocabulary)
    tokens = history.tokens[at]
    norms = 0.4 + 0.6 * np.abs(np.nan_to_num(nll - nll.min() if np.isfinite(nll).any() else nll))
    columns = zip(
        nll.tolist(),
        smoothed.tolist(),
        history.curves.learning_rate[at].tolist(),
        norms.tolist(),
        tokens.tolist(),
        strict=True,
    )
    epoch, scale = world.training.updates_per_epoch, 1024.0 if world.model.precision == "fp16" else 1.0
    heads = []
    for step, (bare, loss, rate, norm, count) in enumerate(columns, start=first):
        bad = not np.isfinite(bare)
        heads.append(
            f'"event":"StepFinished","fields":{{"step":{step},"epoch":{(step - 1) // epoch},"loss":{_number(loss)},'
            f'"nll":{_number(bare)},"learning_rate":{rate!r},"gradient_norm":{_number(nan if bad else norm)},'
            f'"loss_scale":{scale},"skipped":{"true" if bad else "false"},"target_tokens":{count},'
            f'"source_tokens":{int(count * 0.97)},"pairs":{max(1, count // 28)},"batches":2,'
        )
    return heads


def _number(value: float) -> str:
    return f"{value:.7g}" if np.isfinite(value) and abs(value) < 1e30 else '"nan"'


def _log_pauses(history: History, attempt: Attempt, logs: LogFiles) -> None:
    file = logs.rank(0, 0)
    for item in attempt.evaluations:
        for time_s, event in announce.evaluation_events(history, item):
            file.add(time_s, event)
    for checkpoint in attempt.checkpoints:
        for time_s, event in announce.checkpoint_events(history, checkpoint):
            file.add(time_s, event)


def _log_samples(history: History, attempt: Attempt, logs: LogFiles, rng: np.random.Generator) -> None:
    world = history.world
    if not world.evidence.sample_s:
        return
    for host, workers in enumerate(attempt.start.workers):
        if host in world.evidence.unsampled_hosts:
            continue
        file = logs.samples(host)
        file.add(attempt.launched_s + 0.5, describe_host(world, workers))
        for time_s, body in sample_host(history, attempt, host, rng):
            file.add(time_s, body)
