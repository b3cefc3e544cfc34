"""Training over real ssh between the hosts of a lab, which share no disk unless a test says so."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from benchmarks.faulting import FAULTS, Fault, Training, command_of, suffer, training, weights
from benchmarks.killing import write_recipe

from tandem.lab import Lab
from tandem.lab.process import processes_in
from tandem.lab.state import read_state
from tandem.runlog.event import LinkMeasured, RoundStarted, TrainingStarted, WorkersLost
from tandem.runlog.reader import read_records

# Beside the other tests with labs: each lab has a network of its own, and these wait more than they work.
pytestmark = pytest.mark.xdist_group("training in a lab")
STEPS = 200
AT_STEP = 30
PATIENCE = ("--host-timeout", "6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("head")
    write_recipe(folder, steps=STEPS, saved=20)
    return folder


@pytest.fixture(scope="module")
def alone(lab: Lab, folder: Path) -> str:
    """The weights of a run to which nothing happened."""
    with training(lab, folder, "alone", PATIENCE, hosts=2) as run:
        assert run.end() == 0, run.output.read_text()
    return weights(lab, "alone")


def tandem(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tandem", *words]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=200, check=False)


def test_every_host_without_the_heads_disk_has_the_data_the_checkpoints_and_its_part_of_the_log(
    lab: Lab, folder: Path, alone: str
) -> None:
    assert alone != "hosts differ"
    kept = [
        sorted(path.name for path in (lab.home(host) / "work/runs/alone/checkpoints").glob("step-????????"))
        for host in ("h1", "h2")
    ]
    assert kept[0] == kept[1]
    assert kept[0][-1] == f"step-{STEPS:08d}"
    assert not (folder / "runs/alone/checkpoints").exists()
    here = folder / "runs/alone/log"
    for rank, host in enumerate(("h1", "h2")):
        name = f"rank-{rank:05d}.jsonl"
        assert (here / name).read_bytes() == (lab.home(host) / "work/runs/alone/log" / name).read_bytes()


def test_bytes_on_the_link_are_those_that_the_gradients_make(lab: Lab, folder: Path) -> None:
    """In a ring of three each host sends four thirds of all gradients in a step."""
    words = ["model.width=256", "model.feed_forward=1024", "train.max_steps=20", "evaluate.every_steps=null"]
    with training(lab, folder, "bytes", words) as run:
        run.wait_for(lambda: run.count(RoundStarted) == 1, "the ranks to be started")
        before = [sent_bytes(lab, host) for host in lab.hosts]
        assert run.end() == 0, run.output.read_text()
        after = [sent_bytes(lab, host) for host in lab.hosts]
        (started,) = [each.event for each in run.records if isinstance(each.event, TrainingStarted)]
        (round_started,) = [each.event for each in run.records if isinstance(each.event, RoundStarted)]
        links = [each.event for each in run.records if isinstance(each.event, LinkMeasured)]
        printed = run.output.read_text()
    predicted = 20 * started.parameters * 4 * 4 / 3
    assert [late - early for early, late in zip(before, after, strict=True)] == pytest.approx(
        [predicted] * 3, rel=0.05
    )
    assert round_started.workers == {"h1": 1, "h2": 1, "h3": 1}
    assert round_started.interfaces == ("eth0", "eth0", "eth0")
    assert len(links) == 6
    for rank, host in enumerate(lab.hosts):
        assert re.search(rf"^{host}, rank {rank}: started .* on {host} as process", printed, re.MULTILINE)


def processes_of(lab: Lab, host: str, module: bytes) -> list[int]:
    namespace = read_state(lab.folder).host(host).namespace
    return [each.pid for each in processes_in(namespace) if module in command_of(each.pid)]


def break_connection(lab: Lab, host: str) -> None:
    for pid in processes_of(lab, host, b"tandem.launch.far"):
        os.kill(pid, signal.SIGKILL)


def ask_to_stop(lab: Lab, host: str) -> None:
    """As a host does that is shut down: nobody asked the head."""
    for pid in processes_of(lab, host, b"tandem.cli.rank"):
        os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize(
    ("place", "happens", "told"),
    [
        ("the head's", break_connection, "its connection broke"),
        ("the hosts' own", ask_to_stop, "its ranks got SIGTERM"),
    ],
)
def test_on_a_shared_disk_everything_is_written_once_whatever_happens(
    place: str, happens: Callable[[Lab, str], None], told: str, lab: Lab, folder: Path, tmp_path: Path
) -> None:
    run = f"shared-by-{len(place)}"
    words = ["train", "micro.yaml", "--run", f"runs/{run}", "--plain", "--ssh-config", str(lab.ssh_config)]
    words += [] if place == "the head's" else ["--dir", str(tmp_path)]
    words += ["--hosts", "h1,h2", *PATIENCE]
    there = (folder if place == "the head's" else tmp_path) / "runs" / run
    with subprocess.Popen(
        [sys.executable, "-m", "tandem", *words], cwd=folder, stdout=subprocess.DEVNULL
    ) as process:
        while not (there / "checkpoints/step-00000020").exists():
            assert process.poll() is None
            time.sleep(0.05)
        happens(lab, "h2")
    assert process.returncode == 0
    assert (there / f"checkpoints/step-{STEPS:08d}").is_dir()
    records = list(read_records(folder / "runs" / run))
    starts = [record.event for record in records if isinstance(record.event, TrainingStarted)]
    assert [start.checkpoint_hosts for start in starts] == [("h1",), ("h1",)]
    (lost,) = [record.event for record in records if isinstance(record.event, WorkersLost)]
    assert (lost.host, lost.reason.startswith(told)) == ("h2", True)
    lines = [line for file in there.glob("log/rank-*.jsonl") for line in file.read_bytes().splitlines()]
    assert len(lines) == len(set(lines))
    copies = [
        line
        for file in folder.glob(f"runs/{run}/log/rank-*.jsonl")
        for line in file.read_bytes().splitlines()
    ]
    assert sorted(copies) == sorted(lines)
    assert not list(there.glob(".head-*")) + list(there.glob(".seen-*"))


BY_NAME = {fault.name: fault for fault in FAULTS}


def disturb(now: Training, host: str) -> None:
    """What nothing has to be started again for."""
    BY_NAME["link down for 3 s"].strike(now, host)
    BY_NAME["host slow for 5 s"].strike(now, host)


SUFFERED = [
    BY_NAME["worker killed"],
    BY_NAME["rendezvous host killed, comes back"],
    BY_NAME["link cut for good"],
    BY_NAME["host hangs, wakes up"],
    Fault(name="link down for 3 s, then host slow for 5 s", host="h2", strike=disturb, is_loss=False),
]


@pytest.mark.parametrize("fault", SUFFERED, ids=lambda each: each.name)
def test_a_run_survives(fault: Fault, lab: Lab, folder: Path, alone: str) -> None:
    name = fault.name.replace(" ", "-").replace(",", "")
    words = PATIENCE if fault.is_loss else ()
    outcome = suffer(fault, lab, folder, run=name, at_step=AT_STEP, alone=alone, hosts=2, words=words)
    assert (outcome.exit_code, outcome.last_step) == (0, STEPS)
    assert outcome.starts == (2 if fault.is_loss else 1)
    assert outcome.hosts_at_the_end == (2 if fault.keeps_ranks else 1)
    assert outcome.is_identical == fault.keeps_ranks
    assert all(each.startswith(f"{fault.host}: ") for each in outcome.told)


def test_a_run_goes_on_without_a_host_takes_it_in_again_and_ends_everywhere_at_ctrl_c(
    lab: Lab, folder: Path
) -> None:
    with training(lab, folder, "grows", ["--min-hosts", "2", "train.max_steps=100000", *PATIENCE]) as run:
        run.wait_for(lambda: run.last_step() >= AT_STEP, "the first steps")
        lab.signal("h3", signal.SIGKILL)
        run.wait_for(lambda: run.count(RoundStarted) == 2, "a start without the host")
        lab.boot("h3")
        run.wait_for(lambda: run.count(RoundStarted) == 3, "a start with the host")
        run.wait_for(lambda: run.count(TrainingStarted) == 3, "training")
        rounds = [each.event for each in run.records if isinstance(each.event, RoundStarted)]
        assert [len(each.hosts) for each in rounds] == [3, 2, 3]
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 128 + signal.SIGINT
    assert not ranks(lab)
    steps = {
        max(path.name for path in (lab.home(host) / "work/runs/grows/checkpoints").glob("step-????????"))
        for host in lab.hosts
    }
    assert len(steps) == 1


def test_hosts_whose_head_is_killed_save_and_end(lab: Lab, folder: Path) -> None:
    never = ["train.max_steps=100000", "checkpoint.every_steps=100000", "evaluate.every_steps=100000"]
    with training(lab, folder, "headless", [*never, *PATIENCE], hosts=2) as run:
        run.wait_for(lambda: run.last_step() >= 5, "the first steps")
        run.process.kill()
        run.process.wait()
        for pid in [pid for host in ("h1", "h2") for pid in run.workers_of(host)]:
            wait_for_end(pid)
    for host in ("h1", "h2"):
        assert list((lab.home(host) / "work/runs/headless/checkpoints").glob("step-????????"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--hosts", "h1,h9"], "Cannot reach h9 over ssh"),
        (["--hosts", "h1,h2", "--python", "/nowhere/python"], "has no /nowhere/python"),
        (["--hosts", "h1,h2", "--nic", "eth7"], "has no interface eth7"),
        (["--hosts", "h1:2,h2", "--device", "cuda"], "use --device cpu"),
        (["--hosts", "h1,-oProxyCommand=x"], "is no host"),
        (["--hosts", "h1,root@h1"], "h1 and root@h1 are the same host"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence(
    lab: Lab, folder: Path, words: list[str], sentence: str
) -> None:
    common = ["train", "micro.yaml", "--run", "runs/never", "--plain", "--ssh-config", str(lab.ssh_config)]
    done = tandem(*common, "--dir", "work", *words, cwd=folder)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


def ranks(lab: Lab) -> list[int]:
    """Processes of Tandem's that are left in the hosts."""
    return [pid for host in lab.hosts for pid in processes_of(lab, host, b"tandem.cli.rank")]


def wait_for_end(pid: int) -> None:
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        assert select.select([descriptor], [], [], 120.0)[0], "a rank outlives its head"
        os.close(descriptor)


def sent_bytes(lab: Lab, host: str) -> int:
    done = lab.exec(host, ["cat", "/sys/class/net/eth0/statistics/tx_bytes"], capture_output=True, check=True)
    return int(done.stdout)
