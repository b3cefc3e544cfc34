"""The doctor on real hosts: healthy ones are fine, and each fault is named, with nothing else."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.lab import Lab
from tandem.lab.state import read_state
from tandem.launch.doctor.judge import judge
from tandem.launch.doctor.look import look
from tandem.launch.hosts import read_hosts
from tandem.launch.ssh import Ssh
from tandem.runlog.event import HostExamined, LinkMeasured

pytestmark = pytest.mark.xdist_group("lab")
TANDEM = str(Path(sys.executable).with_name("tandem"))
RECIPE = str(Path(__file__).parents[2] / "recipes/demo.yaml")
RATE = 200e6 / 8

# Classic BPF: the beginning of a TCP connection to another port than 22 is dropped, as by a firewall.
CLOSED = (
    "11,40 0 0 12,21 0 7 2048,48 0 0 23,21 0 5 6,40 0 0 36,21 3 0 22,"
    "48 0 0 47,84 0 0 18,21 1 0 2,6 0 0 0,6 0 0 2"
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab.up(tmp_path_factory.mktemp("labs") / "lab", hosts=2, rate="200mbit") as lab:
        yield lab


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Lab]:
    with Lab.up(tmp_path / "lab", hosts=4, rate="200mbit") as lab:
        yield lab


def doctor(lab: Lab, hosts: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [TANDEM, "doctor", RECIPE, "--hosts", hosts, "--ssh-config", str(lab.ssh_config), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def not_fine(lines: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    # Whether two hosts of a shaped link are worth it is no fault of a part.
    parts = (line for line in lines if not line["what"].startswith("step,"))
    return [(line["host"], line["what"], line["verdict"]) for line in parts if line["verdict"] != "fine"]


@pytest.fixture
def full_disk(four: Lab) -> Iterator[None]:
    """h1's working folder has no room."""
    work = four.home("h1") / "work"
    work.mkdir()
    # A host sees what is mounted when it starts.
    four.signal("h1", signal.SIGKILL)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", work], check=True)
    try:
        (work / "full").write_bytes(bytes(2**20))
        four.boot("h1")
        yield
    finally:
        subprocess.run(["umount", "-l", work], check=True)


@pytest.fixture
def closed_port(four: Lab) -> None:
    """h4 takes connections of ssh only."""
    inside = ["tc", "-n", read_state(four.folder).host("h4").namespace]
    subprocess.run([*inside, "qdisc", "add", "dev", "eth0", "clsact"], check=True)
    rule = ["filter", "add", "dev", "eth0", "ingress", "bpf", "direct-action", "bytecode", CLOSED]
    subprocess.run([*inside, *rule], check=True)


@pytest.fixture
def other_version(tmp_path: Path) -> Path:
    """A Python that finds another Tandem on h3."""
    shadow = tmp_path / "other" / "tandem"
    shadow.mkdir(parents=True)
    real = list(tandem.__path__)
    (shadow / "__init__.py").write_text(f"__version__ = '0.0.9'\n__path__ = {real!r}\n")
    python = tmp_path / "python"
    shadowed = f'[ "$TANDEM_LAB_HOST" = h3 ] && export PYTHONPATH="{shadow.parent}"'
    python.write_text(f'#!/bin/sh\n{shadowed}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.usefixtures("full_disk", "closed_port")
def test_each_of_four_faults_is_named_and_nothing_else(four: Lab, other_version: Path) -> None:
    four.link("h2", "loss", "3%")
    faults = [
        ("h1", "disk", "broken"),
        ("h3", "versions", "broken"),
        ("h4", "ports", "broken"),
        ("h2", "loss", "broken"),
    ]
    # Tests beside this one may take its processor away for a while: a healthy link may look poor then, once.
    for _ in range(3):
        result = doctor(four, "h1,h2,h3,h4", "--dir", "work", "--python", str(other_version), "--json")
        lines = json.loads(result.stdout)["lines"]
        if not_fine(lines) == faults:
            break
    assert not_fine(lines) == faults
    assert result.returncode == 1
    cures = {line["host"]: line["cure"] for line in lines if line["cure"]}
    assert "No space left on device" in cures["h1"]
    assert f"h3 has Tandem 0.0.9, this machine {tandem.__version__}" in cures["h3"]
    assert "firewall drops it" in cures["h4"]
    assert cures["h2"].startswith("h2's link loses packets")
    assert not list(four.home("h2").glob(".tandem*"))


def test_healthy_hosts_are_fine_and_their_links_measure_as_shaped(pair: Lab) -> None:
    # Tests beside this one may take its processor away for a while: that makes a link slower, never faster.
    for _ in range(3):
        result = doctor(pair, "h1,h2", "--json")
        held = json.loads(result.stdout)
        speeds = [link["bytes_per_s"] for link in held["links"]]
        if not_fine(held["lines"]) == [] and min(speeds) > 0.9 * RATE:
            break
    assert not_fine(held["lines"]) == []
    assert len(speeds) == 2
    assert all(0.9 * RATE < speed < 1.1 * RATE for speed in speeds)
    assert [link["loss"] for link in held["links"]] == [0.0, 0.0]
    assert held["sums"]["hosts"] == ["h1", "h2"]
    assert [step["mode"] for step in held["steps"]["modes"]] == ["exact", "bf16", "packed"]
    assert 0.8 * RATE < held["steps"]["link_bytes_per_s"] < 1.1 * RATE
    assert all(host["machine"]["cpu_flops_per_s"] > 1e9 for host in held["hosts"])
    assert result.returncode == 0


@pytest.fixture
def weak_second(tmp_path: Path) -> Path:
    """A Python that on h2 has a clock five seconds ahead, and a disk that is slow to say that it wrote."""
    weak = tmp_path / "weak"
    weak.mkdir()
    (weak / "sitecustomize.py").write_text(
        "import os, time\n"
        "now, flush = time.time, os.fsync\n"
        "time.time = lambda: now() + 5\n"
        "os.fsync = lambda number: (time.sleep(5), flush(number))[1]\n"
    )
    python = tmp_path / "python"
    weakened = f'[ "$TANDEM_LAB_HOST" = h2 ] && export PYTHONPATH="{weak}"'
    python.write_text(f'#!/bin/sh\n{weakened}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def test_what_is_far_below_its_twin_is_a_finding_with_what_it_adds_to_a_step(
    pair: Lab, weak_second: Path
) -> None:
    # What h2 sends alone: tc on its own interface.
    shaped = [
        "tc",
        "-n",
        read_state(pair.folder).host("h2").namespace,
        "qdisc",
        "replace",
        "dev",
        "eth0",
        "root",
    ]
    crawling = ["tbf", "rate", "4mbit", "burst", "32kb", "latency", "50ms"]
    subprocess.run([*shaped, *crawling], check=True)
    faults = [
        ("h2", "clock", "poor"),
        ("h2", "disk speed", "poor"),
        ("h2 → h1", "link", "broken"),
    ]
    try:
        # Tests beside this one may take its processor away for a while.
        for _ in range(3):
            result = doctor(pair, "h1,h2", "--python", str(weak_second), "--json")
            held = json.loads(result.stdout)
            if not_fine(held["lines"]) == faults:
                break
    finally:
        pair.link("h2", "rate", "200mbit")
    assert not_fine(held["lines"]) == faults
    assert result.returncode == 1
    clock, disk, link = (
        next(line for line in held["lines"] if (line["host"], line["what"]) == fault[:2]) for fault in faults
    )
    assert "5 s beside what the others log" in clock["cure"]
    gradients, checkpoint = held["needs"]["gradient_bytes"], held["needs"]["checkpoint_bytes"]
    assert link["step_s"] == pytest.approx(gradients / (4e6 / 8) - gradients / RATE, rel=0.2)
    assert checkpoint / 64e6 * 4 < disk["step_s"] * held["needs"]["checkpoint_steps"] < checkpoint / 64e6 * 8


def test_a_brief_look_gives_the_run_log_its_facts(pair: Lab) -> None:
    hosts, ssh = read_hosts("h1,h2"), Ssh(config=pair.ssh_config)
    events = list(look(hosts, ssh, folder="work", brief=True).events())
    examined = [event for event in events if isinstance(event, HostExamined)]
    assert [(event.host, event.address) for event in examined] == [
        (name, pair.address(name)) for name in ("h1", "h2")
    ]
    assert all(abs(event.clock_offset_s) <= event.clock_uncertainty_s + 0.1 for event in examined)
    links = [event for event in events if isinstance(event, LinkMeasured)]
    assert [(link.sender, link.receiver, link.connection) for link in links] == [
        ("h1", "h2", "open"),
        ("h2", "h1", "open"),
    ]
    assert all(0 < link.bytes_per_s < 1.2 * RATE for link in links)


def test_a_host_that_is_not_there_gets_a_line_and_the_others_are_examined(pair: Lab) -> None:
    pair.signal("h2", signal.SIGKILL)
    hosts, ssh = read_hosts("h1,h2"), Ssh(config=pair.ssh_config)
    try:
        examination = look(hosts, ssh, folder="work")
    finally:
        pair.boot("h2")
    bad = [line for line in judge(examination) if line.verdict != "fine"]
    assert [(line.host, line.verdict) for line in bad] == [("h2", "broken")]
    assert "Cannot reach h2 over ssh" in bad[0].cure
    assert examination.hosts[0].machine is not None
