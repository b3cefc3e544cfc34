"""Hosts of a run, told as records of their samplers."""

import math
from collections.abc import Iterator
from pathlib import Path

from tests.unit.observe.story import START_NS

from tandem.runlog.event import HostDescribed, HostSampled
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line


def described(gpus: int = 4, interfaces: tuple[str, ...] = ("lo", "eth0")) -> HostDescribed:
    return HostDescribed(
        cores=64,
        memory_bytes=512 << 30,
        gpus=("NVIDIA H100",) * gpus,
        gpu_memory_bytes=(80 << 30,) * gpus,
        gpu_power_limit_w=(700.0,) * gpus,
        interfaces=interfaces,
        interface_bits_per_s=(0, 10**9, 10**10)[: len(interfaces)],
        disk="nvme0n1",
    )


def sampled(second: int, *, gpus: int = 4, interfaces: int = 2, throttled: int | None = None) -> HostSampled:
    """A second in which GPUs and links are in use, more and less in turns."""
    wave = 0.5 + 0.5 * math.sin(second / 3)
    return HostSampled(
        seconds=1.0,
        cpu=0.25 + 0.125 * wave,
        memory_bytes=90 << 30,
        disk_free_bytes=9 << 40,
        disk_read_bytes_per_s=0.0,
        disk_written_bytes_per_s=4e4,
        gpu_utilisation=tuple(0.75 + 0.25 * wave - 0.02 * gpu for gpu in range(gpus)),
        gpu_memory_bytes=(61 << 30,) * gpus,
        gpu_power_w=tuple(450.0 + 190 * wave + gpu for gpu in range(gpus)),
        gpu_clock_mhz=(1_980.0,) * gpus,
        gpu_temperature_c=tuple(61.0 + gpu for gpu in range(gpus)),
        gpu_throttled=tuple("heat" if gpu == throttled else "" for gpu in range(gpus)),
        received_bytes_per_s=(1_000.0, 4e7 + 5e7 * wave, 0.0)[:interfaces],
        sent_bytes_per_s=(1_000.0, 5e7 + 5.15e7 * wave, 0.0)[:interfaces],
        packets_per_s=(10.0, 8e4, 0.0)[:interfaces],
        dropped=(0, 0, 0)[:interfaces],
        retransmitted=0,
    )


def sampling(
    host: str, *, seconds: int, start_ns: int = START_NS, gpus: int = 4, throttled: int | None = None
) -> Iterator[Record]:
    """What the sampler of a host writes in so many seconds."""
    events = [
        described(gpus),
        *(sampled(each, gpus=gpus, throttled=throttled) for each in range(1, seconds + 1)),
    ]
    for number, event in enumerate(events):
        time_ns = start_ns + number * 1_000_000_000
        yield Record(time_ns=time_ns, clock_s=0.0, host=host, sequence=number, event=event)


def write_samples(run: Path, records: list[Record]) -> None:
    """Append records of samplers to their files."""
    layout = RunLayout(run)
    layout.log.mkdir(parents=True, exist_ok=True)
    for record in records:
        with layout.samples_log(record.host or "").open("ab") as file:
            file.write(to_line(record))
