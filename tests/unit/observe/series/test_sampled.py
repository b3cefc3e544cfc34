"""Samples of a host become rows by GPU and by interface, also where its sampler was started anew."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from tandem.observe.series.columns import HostSamples
from tandem.observe.series.fold import read_series
from tandem.runlog.event import Event, HostDescribed, HostSampled
from tandem.runlog.layout import RunLayout
from tandem.runlog.record import Record, to_line

DESCRIBED = HostDescribed(
    cores=2,
    memory_bytes=8,
    gpus=("A", "B"),
    gpu_memory_bytes=(5, 5),
    gpu_power_limit_w=(9.0, 9.0),
    interfaces=("lo", "eth0"),
    interface_bits_per_s=(0, 10),
    disk="sda",
)


def sample(cpu: float = 0.5) -> HostSampled:
    return HostSampled(
        seconds=1.0,
        cpu=cpu,
        memory_bytes=2**40 + 1,
        disk_free_bytes=7,
        disk_read_bytes_per_s=0.0,
        disk_written_bytes_per_s=1.0,
        gpu_utilisation=(cpu, 1.0),
        gpu_memory_bytes=(3, 4),
        gpu_power_w=(math.nan, 200.0),
        gpu_clock_mhz=(1.0, 2.0),
        gpu_temperature_c=(50.0, 60.0),
        gpu_throttled=("", "power"),
        received_bytes_per_s=(1.0, 2.0),
        sent_bytes_per_s=(3.0, 4.0),
        packets_per_s=(5.0, 6.0),
        dropped=(0, 1),
        retransmitted=2,
    )


def fold(run: Path, *events: Event | bytes) -> HostSamples | None:
    path = RunLayout(run).samples_log("alpha")
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        for second, event in enumerate(events):
            record = Record(
                time_ns=10**18 + second * 10**9,
                clock_s=1.0 * second,
                host="alpha",
                sequence=second,
                event=event if isinstance(event, Event) else sample(),
            )
            file.write(event if isinstance(event, bytes) else to_line(record))
    return read_series(run).samples.get("alpha")


def test_lists_become_rows_and_nan_stays_unknown(tmp_path: Path) -> None:
    samples = fold(tmp_path, DESCRIBED, sample(0.25), sample(0.5), sample(0.75))
    assert samples is not None
    assert samples.described == DESCRIBED
    assert samples.time_s.tolist() == [1.0, 2.0, 3.0]
    assert samples.gpu_utilisation.tolist() == [[0.25, 0.5, 0.75], [1.0, 1.0, 1.0]]
    assert samples.memory_bytes.tolist() == [2**40 + 1] * 3
    assert np.isnan(samples.gpu_power_w[0]).all()
    assert samples.gpu_throttled.tolist() == [[False] * 3, [False] * 3]
    assert samples.gpu_capped.tolist() == [[False] * 3, [True] * 3]
    assert samples.sent_bytes_per_s.tolist() == [[3.0] * 3, [4.0] * 3]


def test_damage_and_what_is_new_are_passed_over(tmp_path: Path) -> None:
    strange = (b'{"schema":1,"time_ns"\n', b"\n", b'{"schema":2,"event":"HostSampled","fields":{}}\n')
    samples = fold(tmp_path, DESCRIBED, sample(), *strange, sample())
    assert samples is not None
    assert samples.cpu.tolist() == [0.5, 0.5]
    assert read_series(tmp_path).damaged == 2


def test_a_new_start_of_the_sampler_may_find_other_interfaces(tmp_path: Path) -> None:
    other = replace(DESCRIBED, interfaces=("eth0", "eth1"))
    samples = fold(tmp_path, DESCRIBED, sample(), other, sample())
    assert samples is not None
    np.testing.assert_array_equal(samples.sent_bytes_per_s, [[4.0, 3.0], [np.nan, 4.0]])


def test_lists_of_uneven_length_are_read_one_by_one(tmp_path: Path) -> None:
    short = replace(sample(), received_bytes_per_s=(1.0,))
    samples = fold(tmp_path, DESCRIBED, sample(), short, sample())
    assert samples is not None
    np.testing.assert_array_equal(samples.received_bytes_per_s, [[1.0, 1.0, 1.0], [2.0, np.nan, 2.0]])


def test_samples_without_a_description_say_nothing(tmp_path: Path) -> None:
    assert fold(tmp_path, sample()) is None


def test_whole_numbers_below_zero_are_not_known(tmp_path: Path) -> None:
    unknown = replace(
        sample(),
        memory_bytes=-1,
        disk_free_bytes=-1,
        gpu_memory_bytes=(-1, 4),
        gpu_temperature_c=(-1.0, 60.0),
        dropped=(-1, 1),
        retransmitted=-1,
    )
    samples = fold(tmp_path, DESCRIBED, unknown)
    assert samples is not None
    assert np.isnan([samples.memory_bytes[0], samples.disk_free_bytes[0], samples.retransmitted[0]]).all()
    np.testing.assert_array_equal(samples.gpu_memory_bytes, [[np.nan], [4.0]])
    np.testing.assert_array_equal(samples.dropped, [[np.nan], [1.0]])
    assert samples.gpu_temperature_c[0, 0] == -1.0


def test_a_sample_whose_network_is_not_known_is_kept(tmp_path: Path) -> None:
    lost = replace(sample(), received_bytes_per_s=(), sent_bytes_per_s=(), packets_per_s=(), dropped=())
    samples = fold(tmp_path, DESCRIBED, sample(), lost)
    assert samples is not None
    np.testing.assert_array_equal(samples.sent_bytes_per_s, [[3.0, np.nan], [4.0, np.nan]])
    assert samples.cpu.tolist() == [0.5, 0.5]
