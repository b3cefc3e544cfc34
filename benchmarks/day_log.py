"""Writes the log of a run that never was as if it went on now: two ranks on two hosts, a step a second, a day long."""

import math
from pathlib import Path

import numpy as np

from tandem.runlog.event import (
    CheckpointWritten,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    HostDescribed,
    HostSampled,
    LossMeasured,
    RunStarted,
    SampleTranslated,
    StepFinished,
    TrainingStarted,
    TranslationScored,
    WorkersLost,
)
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

__all__ = ["DAY_S", "DayLog"]

DAY_S = 86_400
_HOSTS = ("node-a", "node-b")
_EVALUATE_EVERY = 900
_LOST_EVERY = 20_000
_TOKENS, _PARAMETERS = 25_000, 60_880_896
_NANO = 1_000_000_000


class DayLog:
    """A run folder whose log grows by as many seconds as one asks for; its clock goes on from `begun_ns`."""

    def __init__(self, run: Path, *, seconds: int, begun_ns: int) -> None:
        self._layout, self._seconds, self._begun_ns = RunLayout(run), seconds, begun_ns
        self._layout.log.mkdir(parents=True)
        self._dice = np.random.default_rng(1)
        self._sequence = 0
        self._held: dict[Path, list[bytes]] = {}
        self.second = 0
        for rank, host in enumerate(_HOSTS):
            self._tell(_started(host), rank=rank)
            self._sample(host, _described())
        self._tell(self._training(0))
        self.flush()

    def advance(self, seconds: int) -> None:
        """Let so many seconds pass, and write what happens in them."""
        for _ in range(min(seconds, self._seconds - self.second)):
            self.second += 1
            self._pass()
        self.flush()

    @property
    def is_over(self) -> bool:
        """Whether the day is."""
        return self.second >= self._seconds

    def flush(self) -> None:
        """Append what is held back to the files."""
        for path, lines in self._held.items():
            with path.open("ab") as file:
                file.write(b"".join(lines))
        self._held.clear()

    def _pass(self) -> None:
        noise = float(self._dice.normal())
        for rank in range(len(_HOSTS)):
            self._tell(_step(self.second, noise=noise), rank=rank)
        for host in _HOSTS:
            self._sample(host, _sampled(self._dice))
        if self.second % _EVALUATE_EVERY == 0:
            self._evaluate(self.second)
        if self.second % _LOST_EVERY == 0:
            lost = WorkersLost(
                attempt=self.second // _LOST_EVERY,
                exit_code=-9,
                rank=1,
                reason="rank 1 was killed",
                host=_HOSTS[1],
            )
            self._write(self._layout.host_log(_HOSTS[0]), lost, host=_HOSTS[0])
            self._tell(self._training(self.second))

    def _evaluate(self, step: int) -> None:
        loss = 1.3 + 4 * math.exp(-step / 9_000)
        self._tell(EvaluationStarted(step=step))
        for name, held in (("valid", loss), ("probe", loss - 0.1)):
            self._tell(
                LossMeasured(
                    step=step, set=name, loss=held, target_tokens=75_000, pairs=3_000, duration_s=0.1
                )
            )
        self._tell(_scored(step))
        for number in range(3):
            self._tell(_translated(step, number))
        self._tell(EvaluationFinished(step=step, duration_s=0.5, is_best_loss=True, is_best_bleu=True))
        self._tell(_written(step))

    def _training(self, step: int) -> TrainingStarted:
        return TrainingStarted(
            step=step,
            tokens=step * _TOKENS,
            resumed_from=f"checkpoints/step-{step:08d}" if step else "",
            parameters=_PARAMETERS,
            ranks=len(_HOSTS),
            device="NVIDIA A10G",
            precision="bf16",
            layout="packed",
            source_capacity=4096,
            target_capacity=4096,
            updates_per_epoch=2_200,
            pairs=4_524_868,
            max_steps=self._seconds,
            schedule="inverse-sqrt: 2.0 · 512^-0.5 · min(step^-0.5, step · 8000^-1.5)",
            target_tokens_per_update=_TOKENS,
            gradient_bytes=4 * _PARAMETERS,
        )

    def _tell(self, event: Event, *, rank: int = 0) -> None:
        self._write(self._layout.rank_log(rank), event, rank=rank)

    def _sample(self, host: str, event: Event) -> None:
        self._write(self._layout.samples_log(host), event, host=host)

    def _write(self, path: Path, event: Event, *, rank: int | None = None, host: str | None = None) -> None:
        self._sequence += 1
        record = Record(
            time_ns=self._begun_ns + self.second * _NANO + self._sequence % 1_000,
            clock_s=1_000.0 + self.second,
            rank=rank,
            host=host,
            sequence=self._sequence,
            event=event,
        )
        self._held.setdefault(path, []).append(to_line(record))


def _started(host: str) -> RunStarted:
    return RunStarted(
        run="day",
        tandem="0.1.0",
        command=("tandem", "train", "day.yaml"),
        recipe="9f86d081884c7d65",
        world_size=len(_HOSTS),
        host=host,
        python="3.12.3",
        torch="2.13.0",
    )


def _described() -> HostDescribed:
    return HostDescribed(
        cores=48,
        memory_bytes=192 << 30,
        gpus=("NVIDIA A10G",),
        gpu_memory_bytes=(24 << 30,),
        gpu_power_limit_w=(300.0,),
        interfaces=("lo", "eth0"),
        interface_bits_per_s=(0, 10 * 10**9),
        disk="nvme1n1",
    )


def _step(number: int, *, noise: float) -> StepFinished:
    nll = 1.3 + 5 * math.exp(-number / 4_000) + 0.02 * noise
    phases = {"data": 0.001, "forward": 0.25, "backward": 0.5, "exchange": 0.18 + 0.01 * abs(noise)}
    return StepFinished(
        step=number,
        epoch=number // 2_200,
        loss=nll + 1.1,
        nll=nll,
        learning_rate=2 * 512**-0.5 * min(number**-0.5, number * 8_000**-1.5),
        gradient_norm=0.4 + 0.05 * abs(noise),
        loss_scale=1.0,
        skipped=False,
        target_tokens=_TOKENS,
        source_tokens=24_000,
        pairs=900,
        batches=2,
        duration_s=1.0,
        phases={**phases, "optimizer": 0.05, "other": 0.01},
        split=0,
        sent_bytes=4 * _PARAMETERS,
    )


def _sampled(dice: np.random.Generator) -> HostSampled:
    noise = dice.normal(size=4)
    traffic = 2.4e8 * (1 + 0.02 * float(noise[0]))
    return HostSampled(
        seconds=1.0,
        cpu=round(0.1 + 0.01 * abs(float(noise[1])), 4),
        memory_bytes=int(9e10),
        disk_free_bytes=int(9e11),
        disk_read_bytes_per_s=0.0,
        disk_written_bytes_per_s=4e4,
        gpu_utilisation=(0.97,),
        gpu_memory_bytes=(int(2e10),),
        gpu_power_w=(round(240 + 9 * float(noise[2]), 1),),
        gpu_clock_mhz=(1_650.0,),
        gpu_temperature_c=(61.0,),
        gpu_throttled=("",),
        received_bytes_per_s=(2e4, traffic),
        sent_bytes_per_s=(2e4, traffic),
        packets_per_s=(120.0, traffic / 1_400),
        dropped=(0, 0),
        retransmitted=0,
    )


def _scored(step: int) -> TranslationScored:
    bleu = 28 - 20 * math.exp(-step / 9_000)
    return TranslationScored(
        step=step,
        set="valid",
        bleu=bleu,
        bleu_signature="nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        chrf=2 * bleu,
        chrf_signature="nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0",
        sentences=3_000,
        hypotheses=f"hypotheses/step-{step:08d}/valid.txt",
        duration_s=0.3,
        bleu_low=bleu - 0.7,
        bleu_high=bleu + 0.7,
    )


def _translated(step: int, number: int) -> SampleTranslated:
    return SampleTranslated(
        step=step,
        set="valid",
        number=number,
        source="The committee met on Tuesday.",
        reference="Der Ausschuss trat am Dienstag zusammen.",
        hypothesis=f"Der Ausschuss kam am Dienstag zusammen, zum {step}. Mal.",
    )


def _written(step: int) -> CheckpointWritten:
    return CheckpointWritten(
        step=step,
        folder=f"checkpoints/step-{step:08d}",
        bytes=12 * _PARAMETERS,
        blocked_s=0.04,
        write_s=3.2,
        files={"model.safetensors": 4 * _PARAMETERS, "optimizer.safetensors": 8 * _PARAMETERS},
    )
