import math
from pathlib import Path

import psutil
import pytest

from tandem.telemetry.sampler.host import Host


def _fail(*_words: object, **_named: object) -> None:
    raise RuntimeError("planted")


def test_a_part_that_fails_is_not_known_and_the_others_are_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, gpus=[])
    monkeypatch.setattr(psutil, "virtual_memory", _fail)
    described = host.describe()
    assert (described.cores, described.memory_bytes) == (-1, -1)
    assert described.interfaces
    monkeypatch.undo()
    monkeypatch.setattr("tandem.telemetry.sampler.network.nominal_bits_per_s", _fail)
    described = host.describe()
    assert described.interfaces == ()
    assert described.memory_bytes > 0


def test_a_part_that_fails_is_not_known_and_the_others_are_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, gpus=[])
    monkeypatch.setattr(psutil, "net_io_counters", _fail)
    monkeypatch.setattr(psutil, "cpu_percent", _fail)
    sample = host.sample()
    assert (sample.sent_bytes_per_s, sample.dropped, sample.retransmitted) == ((), (), -1)
    assert math.isnan(sample.cpu)
    assert sample.memory_bytes == -1
    assert sample.disk_free_bytes > 0
