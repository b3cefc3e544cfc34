"""Writes the log of a long run that never was: two hosts of eight GPUs, a day, two restarts, samples once a second."""

import itertools
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.progress import Progress
from tandem.runlog.event import (
    CheckpointRemoved,
    CheckpointWritten,
    DeviceMeasured,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ExchangeProbed,
    HostDescribed,
    HostExamined,
    HostSampled,
    LossMeasured,
    RoundStarted,
    RunFinished,
    RunStarted,
    SampleTranslated,
    TrainingFinished,
    TrainingStarted,
    TranslationScored,
    WorkersLost,
)
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

__all__ = ["LongRun", "write_long_log"]

Numbers = NDArray[np.float64]

_BEGUN_NS = 1_767_225_600_000_000_000
_HOSTS = ("node-a", "node-b")
_NAMES = ("10.0.0.1", "10.0.0.2")
"""As the command line names them."""
_AHEAD_S = (0.0, 0.35)
_GPUS = 8
_RANKS = len(_HOSTS) * _GPUS
_PARAMETERS = 60_880_896
_GRADIENT_BYTES = 4 * _PARAMETERS
_TOKENS, _UPDATES_PER_EPOCH = 65_536, 2_200
_EVALUATION_S, _RESTART_S, _FIRST_S, _BLOCKED_S = 25.0, 45.0, 20.0, 0.04
_SHUT_S = 2.0
_KEPT = 3

_STEP = (
    '{"schema":1,"time_ns":%d,"clock_s":%r,"rank":%d,"sequence":%d,"event":"StepFinished","fields":{"step":%d,'
    '"epoch":%d,"loss":%r,"nll":%r,"learning_rate":%r,"gradient_norm":%r,"loss_scale":1.0,"skipped":false,'
    '"target_tokens":%d,"source_tokens":%d,"pairs":%d,"batches":16,"duration_s":%r,"phases":{"data":%r,"forward":%r,'
    '"backward":%r,"exchange":%r,"optimizer":%r,"other":%r},"split":0,"sent_bytes":'
    + str(_GRADIENT_BYTES)
    + "}}\n"
)


@dataclass(frozen=True)
class LongRun:
    """The whole story of the run, drawn from a seed; a row for every step that was begun, redone ones included."""

    steps: int = 300_000
    evaluate_every: int = 4_000
    probe_every: int = 500
    seed: int = 1

    @cached_property
    def rounds(self) -> tuple[range, ...]:
        """Steps of each start: twice a worker is lost, and training goes back to the last checkpoint."""
        every = self.evaluate_every
        lost = [round(share * self.steps / every) * every + round(0.6 * every) for share in (0.36, 0.68)]
        starts = [1, *(step // every * every + 1 for step in lost)]
        return tuple(range(start, stop + 1) for start, stop in zip(starts, [*lost, self.steps], strict=True))

    @cached_property
    def step(self) -> NDArray[np.int64]:
        """Number of each step."""
        return np.concatenate([np.arange(each.start, each.stop) for each in self.rounds])

    @cached_property
    def first_rows(self) -> tuple[int, ...]:
        """The row at which each round begins."""
        return tuple(itertools.accumulate((len(each) for each in self.rounds[:-1]), initial=0))

    @cached_property
    def compute_s(self) -> Numbers:
        """Forward and backward of each rank: mostly alike, one GPU a little slower, now and then a hiccup."""
        dice = np.random.default_rng([self.seed, 1])
        spread = dice.gamma(9.0, 0.0012, (_RANKS, len(self.step)))
        slower = np.where(np.arange(_RANKS) == 11, 1.03, 1.0)[:, None]
        hiccup = (dice.random((_RANKS, len(self.step))) < 2e-4) * dice.exponential(0.4, (_RANKS, 1))
        return (0.186 + spread) * slower + hiccup

    @cached_property
    def network_s(self) -> Numbers:
        """What the slowest waits for the network: it has good and bad hours."""
        dice = np.random.default_rng([self.seed, 2])
        hours = np.sin(np.linspace(0.0, 7.0, len(self.step)))
        return 0.052 + 0.012 * hours + dice.gamma(2.0, 0.003, len(self.step))

    @cached_property
    def end_s(self) -> Numbers:
        """When each step ended, evaluations, checkpoints and restarts counted."""
        pauses = np.zeros(len(self.step))
        pauses[1:] += (self.step[:-1] % self.evaluate_every == 0) * (_EVALUATION_S + _BLOCKED_S)
        pauses[list(self.first_rows)] += _RESTART_S
        ends: Numbers = np.cumsum(self.compute_s.max(axis=0) + self.network_s + 0.0165 + pauses)
        return ends

    @property
    def seconds(self) -> int:
        """How long it took, to the next second."""
        return int(self.end_s[-1] + _EVALUATION_S) + 3

    def phases(self, rank: int) -> dict[str, Numbers]:
        """Seconds of one rank in each part of each step."""
        dice = np.random.default_rng([self.seed, 3, rank])
        compute = self.compute_s[rank]
        return {
            "data": dice.gamma(4.0, 2.2e-5, len(compute)),
            "forward": 0.34 * compute,
            "backward": 0.66 * compute,
            "exchange": self.compute_s.max(axis=0) - compute + self.network_s,
            "optimizer": 0.0121 + dice.exponential(2e-4, len(compute)),
            "other": 0.0037 + dice.exponential(3e-4, len(compute)),
        }

    def learnt(self) -> tuple[Numbers, ...]:
        """Loss, its part without smoothing, learning rate and norm of the gradients; the same wherever it is redone."""
        noise = np.random.default_rng([self.seed, 4]).normal(size=(2, self.steps + 1))[:, self.step]
        falling = 5.6 * np.exp(-self.step / 2_500) + 1.4 * (1 + self.step / 3_000) ** -0.35
        nll = 1.35 + falling + 0.02 * noise[0]
        rate = 2.0 * 512**-0.5 * np.minimum(self.step**-0.5, self.step * 8_000**-1.5)
        return (
            nll + 1.1 - 0.05 * falling,
            nll,
            rate,
            0.35 + 2.0 * np.exp(-self.step / 900) + 0.02 * np.abs(noise[1]),
        )


def write_long_log(run: Path, story: LongRun, *, workers: int, progress: Progress) -> int:
    """Write all files of the log; returns their bytes."""
    RunLayout(run).log.mkdir(parents=True)
    # Copies, which draw for themselves: what this one has drawn would be sent to every process.
    jobs: list[tuple[Callable[[Path, LongRun, int], None], LongRun, int]]
    jobs = [(_write_rank, replace(story), rank) for rank in range(_RANKS)]
    jobs += [(_write_samples, replace(story), host) for host in range(len(_HOSTS))]
    _write_head(run, story)
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(workers, mp_context=context) as pool,
        progress.bar("writing", unit="files", total=len(jobs)) as bar,
    ):
        for future in [pool.submit(write, run, drawn, number) for write, drawn, number in jobs]:
            future.result()
            bar.advance(1)
    return sum(path.stat().st_size for path in RunLayout(run).log.iterdir())


class _Lines:
    """One file: events at times of the head's clock, written with those of its own host."""

    def __init__(self, *, host: int, rank: int | None) -> None:
        self._ahead_ns = round(1e9 * _AHEAD_S[host])
        self.rank, self.host = rank, _HOSTS[host]
        self.sequence = 0
        self.held: list[bytes] = []

    def add(self, at_s: float, *events: Event) -> None:
        for event in events:
            stamps = self.stamp_ns(at_s), round(1_000.0 + at_s, 6)
            named: dict[str, Any] = {"host": self.host} if self.rank is None else {"rank": self.rank}
            record = Record(
                time_ns=stamps[0], clock_s=stamps[1], sequence=self.sequence, event=event, **named
            )
            self.held.append(to_line(record))
            self.sequence += 1

    def stamp_ns(self, at_s: float) -> int:
        return _BEGUN_NS + int(1e9 * at_s) + self._ahead_ns


def _write_rank(run: Path, story: LongRun, rank: int) -> None:
    lines = _Lines(host=rank // _GPUS, rank=rank)
    dice = np.random.default_rng([story.seed, 5])
    steps = _StepLines(story, rank)
    with RunLayout(run).rank_log(rank).open("wb") as file:
        for number, (first, held) in enumerate(zip(story.first_rows, story.rounds, strict=True)):
            begun_s = (story.end_s[first - 1] if first else 0.0) + _SHUT_S
            _start_rank(lines, story, number, at_s=begun_s)
            for row in range(first, first + len(held)):
                if story.step[row] % story.probe_every and row + 1 < first + len(held):
                    continue
                steps.write_up_to(row, lines)
                if story.step[row] % story.probe_every == 0:
                    lines.add(float(story.end_s[row]), _probed(story, rank, row))
                if story.step[row] % story.evaluate_every == 0 and rank == 0:
                    _evaluate(lines, story, row, dice)
                file.write(b"".join(lines.held))
                lines.held.clear()
        if rank == 0:
            finished = TrainingFinished(
                step=story.steps,
                tokens=_TOKENS * story.steps,
                reason=f"reached {story.steps:,} steps",
                duration_s=float(story.end_s[-1]),
            )
            lines.add(story.seconds - 2.0, finished)
        lines.add(story.seconds - 2.0, RunFinished(reason=f"reached {story.steps:,} steps"))
        file.write(b"".join(lines.held))


class _StepLines:
    """The steps of one rank as text, some at a time."""

    def __init__(self, story: LongRun, rank: int) -> None:
        phases = {name: np.round(held, 6) for name, held in story.phases(rank).items()}
        dice = np.random.default_rng([story.seed, 6])
        counts = dice.integers((_TOKENS - 60, 61_000, 2_000), (_TOKENS, 63_000, 2_300), (story.steps + 1, 3))
        self._story, self._rank, self._done = story, rank, 0
        self._columns = [
            story.step,
            story.step // _UPDATES_PER_EPOCH,
            *story.learnt(),
            *counts[story.step].T,
            np.round(np.sum(list(phases.values()), axis=0), 6),
            *phases.values(),
        ]
        self._jitter_s = np.random.default_rng([story.seed, 7, rank]).exponential(4e-4, len(story.step))

    def write_up_to(self, row: int, lines: _Lines) -> None:
        """Write the steps from the last one written to that of a row."""
        rows = slice(self._done, row + 1)
        self._done = row + 1
        ends = self._story.end_s[rows] + self._jitter_s[rows]
        held = zip(*(column[rows].tolist() for column in self._columns), strict=True)
        for sequence, (end_s, values) in enumerate(zip(ends.tolist(), held, strict=True), lines.sequence):
            stamps = lines.stamp_ns(end_s), round(1_000.0 + end_s, 6), self._rank, sequence
            lines.held.append((_STEP % (*stamps, *values)).encode())
        lines.sequence += len(ends)


def _start_rank(lines: _Lines, story: LongRun, number: int, *, at_s: float) -> None:
    started = RunStarted(
        run="long",
        tandem="0.1.0",
        command=("tandem", "train", "long.yaml"),
        recipe="9f86d081884c7d65",
        world_size=_RANKS,
        host=lines.host,
        python="3.12.3",
        torch="2.13.0",
    )
    measured = DeviceMeasured(device="NVIDIA A10G", precision="bf16", flops_per_s=6.1e13, duration_s=0.25)
    lines.add(at_s, started)
    lines.add(at_s + 8.0, measured)
    if lines.rank == 0:
        lines.add(at_s + 9.0, _training(story, number))


def _training(story: LongRun, number: int) -> TrainingStarted:
    step = story.rounds[number].start - 1
    return TrainingStarted(
        step=step,
        tokens=step * _TOKENS,
        resumed_from=f"checkpoints/step-{step:08d}" if step else "",
        parameters=_PARAMETERS,
        ranks=_RANKS,
        device="NVIDIA A10G",
        precision="bf16",
        layout="packed",
        source_capacity=4096,
        target_capacity=4096,
        updates_per_epoch=_UPDATES_PER_EPOCH,
        pairs=4_524_868,
        max_steps=story.steps,
        schedule="inverse-sqrt: 2.0 · 512^-0.5 · min(step^-0.5, step · 8000^-1.5)",
        target_tokens_per_update=_TOKENS,
        way="fused",
        checkpoint_hosts=_HOSTS,
        flops_per_target_token=4.1e8,
        gradient_bytes=_GRADIENT_BYTES,
    )


def _probed(story: LongRun, rank: int, row: int) -> ExchangeProbed:
    compute_s = float(story.compute_s[rank, row])
    exchange_s = float(story.compute_s[:, row].max() - compute_s + story.network_s[row])
    return ExchangeProbed(
        step=int(story.step[row]),
        synchronised_s=round(compute_s + exchange_s, 6),
        unsynchronised_s=round(0.97 * compute_s, 6),
        exchange_s=round(exchange_s, 6),
    )


def _evaluate(lines: _Lines, story: LongRun, row: int, dice: np.random.Generator) -> None:
    step, at_s = int(story.step[row]), float(story.end_s[row])
    folder = f"checkpoints/step-{step:08d}"
    loss = 1.32 + 1.4 * (1 + step / 3_000) ** -0.35 + dice.normal(0, 0.004)
    bleu = 26.6 - 18.0 * (1 + step / 4_000) ** -1.1 + dice.normal(0, 0.15)
    lines.add(at_s, EvaluationStarted(step=step))
    for name, held in (("valid", loss), ("probe", loss - 0.05)):
        lines.add(
            at_s + 5.0,
            LossMeasured(step=step, set=name, loss=held, target_tokens=75_000, pairs=3_000, duration_s=4.5),
        )
    lines.add(at_s + 24.0, _scored(step, bleu), *(_sample(step, number) for number in range(3)))
    finished = EvaluationFinished(step=step, duration_s=_EVALUATION_S, is_best_loss=True, is_best_bleu=True)
    lines.add(at_s + _EVALUATION_S, finished, _written(step, folder))
    removed = step - _KEPT * story.evaluate_every
    if removed > 0:
        lines.add(
            at_s + _EVALUATION_S, CheckpointRemoved(step=removed, folder=f"checkpoints/step-{removed:08d}")
        )


def _scored(step: int, bleu: float) -> TranslationScored:
    return TranslationScored(
        step=step,
        set="valid",
        bleu=bleu,
        bleu_signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        chrf=2.1 * bleu,
        chrf_signature="nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0",
        sentences=3_000,
        hypotheses=f"hypotheses/step-{step:08d}/valid.txt",
        duration_s=19.0,
        bleu_low=bleu - 0.7,
        bleu_high=bleu + 0.7,
    )


def _sample(step: int, number: int) -> SampleTranslated:
    return SampleTranslated(
        step=step,
        set="valid",
        number=number,
        source="The committee met on Tuesday.",
        reference="Der Ausschuss trat am Dienstag zusammen.",
        hypothesis="Der Ausschuss kam am Dienstag zusammen.",
    )


def _written(step: int, folder: str) -> CheckpointWritten:
    files = {
        "model.safetensors": _GRADIENT_BYTES,
        "optimizer.safetensors": 2 * _GRADIENT_BYTES,
        "state.json": 403,
        "manifest.json": 1_055,
    }
    return CheckpointWritten(
        step=step, folder=folder, bytes=sum(files.values()), blocked_s=_BLOCKED_S, write_s=3.2, files=files
    )


def _write_head(run: Path, story: LongRun) -> None:
    """The log of the host from which the run was started."""
    lines = _Lines(host=0, rank=None)
    for name, ahead_s in zip(_NAMES, _AHEAD_S, strict=True):
        lines.add(0.0, _examined(name, ahead_s))
    for number, first in enumerate(story.first_rows):
        lost_s = float(story.end_s[first - 1]) if first else 0.0
        if first:
            reason = "rank 11 was killed"
            lines.add(
                lost_s + 0.5,
                WorkersLost(attempt=number, exit_code=-9, rank=11, reason=reason, host=_NAMES[1]),
            )
        started = RoundStarted(
            round=number + 1,
            hosts=_NAMES,
            workers=dict.fromkeys(_NAMES, _GPUS),
            address=_NAMES[0],
            interfaces=("eth0", "eth0"),
        )
        lines.add(lost_s + 1.0, started)
    lines.add(story.seconds - 1.0, RunFinished(reason="completed"))
    RunLayout(run).host_log(_HOSTS[0]).write_bytes(b"".join(lines.held))


def _examined(name: str, ahead_s: float) -> HostExamined:
    return HostExamined(
        host=name,
        address=name,
        interface="eth0",
        interface_bits_per_s=25 * 10**9,
        tandem="0.1.0",
        python="3.12.3",
        torch="2.13.0",
        cores=192,
        memory_bytes=768 << 30,
        gpus=("NVIDIA A10G",) * _GPUS,
        gpu_memory_bytes=24 << 30,
        clock_offset_s=ahead_s,
        clock_uncertainty_s=0.0002,
        disk_free_bytes=10**12,
        disk_write_bytes_per_s=9e8,
    )


def _write_samples(run: Path, story: LongRun, host: int) -> None:
    lines = _Lines(host=host, rank=None)
    dice = np.random.default_rng([story.seed, 8, host])
    described = HostDescribed(
        cores=192,
        memory_bytes=768 << 30,
        gpus=("NVIDIA A10G",) * _GPUS,
        gpu_memory_bytes=(24 << 30,) * _GPUS,
        gpu_power_limit_w=(300.0,) * _GPUS,
        interfaces=("lo", "eth0"),
        interface_bits_per_s=(0, 25 * 10**9),
        disk="nvme1n1",
    )
    lines.add(0.0, described)
    # Steps that end within a second carry its traffic.
    steps_a_second = np.bincount(story.end_s.astype(np.int64), minlength=story.seconds + 1)
    with RunLayout(run).samples_log(_HOSTS[host]).open("wb") as file:
        for second in range(1, story.seconds):
            lines.add(float(second), _sampled(float(steps_a_second[second]), dice))
            if second % 1_000 == 0:
                file.write(b"".join(lines.held))
                lines.held.clear()
        file.write(b"".join(lines.held))


def _sampled(steps: float, dice: np.random.Generator) -> HostSampled:
    noise = dice.normal(size=(4, _GPUS))
    busy = 0.99 if steps else 0.35
    moved = steps * 2 * (_RANKS - 1) / _RANKS * _GRADIENT_BYTES
    traffic = [_rounded(1e6 + moved * (1 + 0.02 * held)) for held in noise[3, :2]]
    return HostSampled(
        seconds=_rounded(1.0 + abs(noise[3, 2]) * 1e-3),
        cpu=_rounded(0.08 + 0.01 * abs(noise[3, 3])),
        memory_bytes=int(9e10 + 1e8 * noise[3, 4]),
        disk_free_bytes=int(9e11 + 1e6 * noise[3, 5]),
        disk_read_bytes_per_s=0.0,
        disk_written_bytes_per_s=_rounded(4e4 * abs(noise[3, 6])),
        gpu_utilisation=tuple(np.clip(busy + 0.01 * noise[0], 0, 1).round(2).tolist()),
        gpu_memory_bytes=tuple((2e10 + 1e6 * noise[1]).astype(np.int64).tolist()),
        gpu_power_w=tuple((120 + 130 * busy + 9 * noise[1]).round(1).tolist()),
        gpu_clock_mhz=tuple((1_650 + 15 * noise[2]).round(0).tolist()),
        gpu_temperature_c=tuple((61 + 2 * noise[2]).round(0).tolist()),
        gpu_throttled=tuple("power" if held > 2.5 else "" for held in noise[2]),
        received_bytes_per_s=(2e4, traffic[0]),
        sent_bytes_per_s=(2e4, traffic[1]),
        packets_per_s=(120.0, _rounded(sum(traffic) / 1_400)),
        dropped=(0, int(noise[3, 7] > 4)),
        retransmitted=int(dice.poisson(0.3)),
    )


def _rounded(value: float) -> float:
    return round(float(value), 6)
