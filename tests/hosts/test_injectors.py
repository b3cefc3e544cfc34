"""Faults that benchmarks inject are there while they should be, are counted, and leave nothing behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from benchmarks.truth.injectors import Account, Injector, half_duplex, hogged, link, one_way, stopped, weak
from benchmarks.truth.scene import Scene

from tandem.lab import Lab

pytestmark = pytest.mark.xdist_group("lab")


@dataclass(slots=True, kw_only=True)
class Ranks(Scene):
    """A scene whose ranks are any processes."""

    pids: Mapping[int, int] = field(default_factory=dict)

    def workers(self) -> Mapping[int, int]:
        return self.pids


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab.up(tmp_path_factory.mktemp("labs") / "lab", hosts=2) as lab:
        yield lab


@pytest.fixture
def worker() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def scene(folder: Path, process: "subprocess.Popen[str]", lab: Lab | None = None) -> Ranks:
    return Ranks(folder=folder, name="run", process=process, lab=lab, pids={0: process.pid, 1: process.pid})


def shaped(lab: Lab, host: str) -> str:
    return lab.exec(host, ["tc", "qdisc", "show", "dev", "eth0"], capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("inject", "word"),
    [
        (link("rate", "50mbit"), "rate 50Mbit"),
        (one_way("20mbit"), "rate 20Mbit"),
        (half_duplex("60mbit"), "tbf"),
    ],
)
def test_a_link_is_throttled_inside_the_block_and_free_after_it(
    inject: Injector, word: str, lab: Lab, tmp_path: Path, worker: "subprocess.Popen[str]"
) -> None:
    account = Account()
    free = {host: shaped(lab, host) for host in lab.hosts}
    with inject(scene(tmp_path, worker, lab), account):
        until(lambda: word in shaped(lab, "h2"))
    assert {host: shaped(lab, host) for host in lab.hosts} == free
    assert any(word in said for said in account.said)
    assert account.begun_ns < account.ended_ns


@pytest.mark.parametrize(
    "words", [("delay", "20ms"), ("loss", "3%"), ("loss", "1%", "delay", "10ms"), ("down",)]
)
def test_a_link_that_comes_and_goes_is_counted_and_left_well(
    words: tuple[str, ...], lab: Lab, tmp_path: Path, worker: "subprocess.Popen[str]"
) -> None:
    account, well = Account(), lab.link_of("h2")
    with link(*words, on_s=0.05, off_s=0.05)(scene(tmp_path, worker, lab), account):
        until(lambda: account.times >= 2)
    assert lab.link_of("h2") == well
    assert account.injected_s >= 0.05


def test_seconds_of_a_stop_are_counted_and_the_rank_goes_on(
    tmp_path: Path, worker: "subprocess.Popen[str]"
) -> None:
    account = Account()
    with stopped(1, on_s=0.2, off_s=0.1)(scene(tmp_path, worker), account):
        until(lambda: state(worker.pid) == "T")
        until(lambda: account.times >= 2)
    until(lambda: state(worker.pid) != "T")
    assert 0.2 <= account.injected_s < time.monotonic()


def test_a_core_is_shared_with_processes_that_end(tmp_path: Path, worker: "subprocess.Popen[str]") -> None:
    cores, account = os.sched_getaffinity(worker.pid), Account()
    with hogged(1, hogs=2)(scene(tmp_path, worker), account):
        until(lambda: len(os.sched_getaffinity(worker.pid)) == 1)
    assert os.sched_getaffinity(worker.pid) == cores
    assert "2 processes took" in account.said[-1]


def test_a_weakness_stands_in_the_file_inside_the_block_alone(
    tmp_path: Path, worker: "subprocess.Popen[str]"
) -> None:
    account, place = Account(), scene(tmp_path, worker)
    with weak(flush_s=0.5, ranks=(0,))(place, account):
        until(place.weak.exists)
        (tmp_path / "weak-flush_s-0.txt").write_text("0.5\n0.5\n")
    assert not place.weak.exists()
    assert account.said == ['seconds that were added: {"weak-flush_s-0": 1.0}']


def test_a_fault_that_could_not_be_made_is_an_error(lab: Lab, tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""], text=True)
    gone.wait()
    with (
        pytest.raises(RuntimeError, match="could not be made"),
        link("rate", "1bit")(scene(tmp_path, gone, lab), Account()),
    ):
        pass


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.01)
