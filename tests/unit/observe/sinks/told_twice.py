"""A run that is lost, goes back and ends, as records; what reads it may be stopped anywhere between."""

import math
from collections.abc import Iterator
from pathlib import Path

from tests.unit.observe.story import Teller, finished, started

from tandem.runlog.event import HostDescribed, HostSampled, RunFinished, RunStarted, WorkersLost
from tandem.runlog.record import Record

RECIPE = Path(__file__).parents[4] / "recipes/demo.yaml"
REDONE_LOSS = 1.0


def described() -> HostDescribed:
    return HostDescribed(
        cores=16,
        memory_bytes=1 << 36,
        gpus=("Invented 9000", "Invented 9000"),
        gpu_memory_bytes=(1 << 34, -1),
        gpu_power_limit_w=(300.0, math.nan),
        interfaces=("lo", "eth0"),
        interface_bits_per_s=(0, 10_000_000_000),
        disk="sda",
    )


def sampled(cpu: float = 0.25) -> HostSampled:
    return HostSampled(
        seconds=1.0,
        cpu=cpu,
        memory_bytes=1 << 33,
        disk_free_bytes=1 << 40,
        disk_read_bytes_per_s=0.0,
        disk_written_bytes_per_s=0.0,
        gpu_utilisation=(0.9, math.nan),
        gpu_memory_bytes=(1 << 33, -1),
        gpu_power_w=(250.0, math.nan),
        gpu_clock_mhz=(1_500.0, math.nan),
        gpu_temperature_c=(60.0, math.nan),
        gpu_throttled=("heat", ""),
        received_bytes_per_s=(1.5, 2e6),
        sent_bytes_per_s=(1.5, 3e6),
        packets_per_s=(1.0, 2.0),
        dropped=(0, 0),
        retransmitted=0,
    )


def told(teller: Teller) -> Iterator[Record]:
    """Sixty steps with evaluations after 20, 40 and 60; lost at 50, and done again from 41 on."""
    yield teller.tell(
        RunStarted(
            run="story",
            tandem="0.1.0",
            command=("tandem", "train"),
            recipe="0" * 64,
            world_size=1,
            host="alpha",
            python="3.11",
            torch="2.13",
        ),
        rank=None,
    )
    yield teller.tell(described(), rank=None)
    yield teller.tell(started())
    yield from _steps(teller, range(1, 51), loss=None)
    yield teller.tell(WorkersLost(attempt=1, exit_code=-9, rank=0, reason="killed by SIGKILL"), rank=None)
    yield teller.tell(started(40))
    yield from _steps(teller, range(41, 61), loss=REDONE_LOSS)
    yield teller.tell(finished(60))
    yield teller.tell(RunFinished(reason="completed"), rank=None)


def _steps(teller: Teller, numbers: range, *, loss: float | None) -> Iterator[Record]:
    for number in numbers:
        yield teller.step(number, loss=loss)
        # A second goes by in four steps.
        yield from [teller.tell(sampled(), rank=None)] if number % 4 == 0 else []
        yield from teller.evaluation(number) if number % 20 == 0 else ()
