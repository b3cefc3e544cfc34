"""A real lab: hosts with their own network, shaped links, ssh, and nothing left behind."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tandem.errors import TandemError
from tandem.lab import Lab
from tandem.lab.process import identify, is_alive, processes_in
from tandem.lab.state import Host, read_state, write_state

pytestmark = pytest.mark.xdist_group("lab")
TANDEM = str(Path(sys.executable).with_name("tandem"))
NAMESPACES = Path("/run/netns")

SINK = """
import socket
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    while connection.recv(1 << 20):
        pass
    connection.send(b"x")
"""
SOURCE = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 5000)) as connection:
    begin, sent, block = time.monotonic(), 0, bytes(1 << 16)
    while time.monotonic() < begin + 1.5:
        sent += connection.send(block)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
    print(sent * 8 / (time.monotonic() - begin))
"""
ECHO = """
import socket
with socket.create_server(("", 5001)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    while data := connection.recv(1):
        connection.send(data)
"""
ASK = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 5001)) as connection:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for line in sys.stdin:
        begin = time.monotonic()
        connection.send(b"x")
        connection.recv(1)
        print(time.monotonic() - begin, flush=True)
"""
COUNT = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    end.bind(("", 5002))
    print("ready", flush=True)
    end.recv(9)
    end.settimeout(1)
    seen = 1
    try:
        while True:
            end.recv(9)
            seen += 1
    except TimeoutError:
        print(seen)
"""
SLEEP = """
import time
print("ready", flush=True)
time.sleep(1000)
"""
SPRAY = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    for _ in range(1000):
        end.sendto(b"x", (sys.argv[1], 5002))
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab.up(tmp_path_factory.mktemp("labs") / "a lab", hosts=3) as lab:
        yield lab


@pytest.fixture
def plain(lab: Lab) -> Iterator[Lab]:
    """The lab, whose links are as they were when the test is over."""
    yield lab
    for host in lab.hosts:
        lab.link(host, "up", "rate", "none", "delay", "0ms", "loss", "0%")


def python(lab: Lab, host: str, program: str, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *words]
    return lab.start(host, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def serving(lab: Lab, host: str, program: str) -> "subprocess.Popen[str]":
    process = python(lab, host, program)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def bits_per_second(lab: Lab, sender: str, receiver: str) -> float:
    with serving(lab, receiver, SINK), python(lab, sender, SOURCE, lab.address(receiver)) as source:
        return float(source.communicate(timeout=60)[0])


def check_rate(lab: Lab, sender: str, receiver: str, *, rate: float) -> None:
    measured: list[float] = []
    # Tests beside this one may take its processor away for a while: that makes it slower, never faster.
    while len(measured) < 4 and max(measured, default=0.0) < 0.85 * rate:
        measured.append(bits_per_second(lab, sender, receiver))
    assert 0.85 * rate < max(measured) < 1.15 * rate


def ask(asker: "subprocess.Popen[str]") -> float:
    assert asker.stdin is not None
    assert asker.stdout is not None
    asker.stdin.write("go\n")
    asker.stdin.flush()
    return float(asker.stdout.readline())


def said(lab: Lab, host: str, *words: str) -> str:
    return lab.exec(host, words, capture_output=True, check=True, timeout=60).stdout.strip()


def tandem(labs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TANDEM_LABS": str(labs)}
    return subprocess.run(
        [TANDEM, "lab", *words], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def own_network() -> str:
    words = (["-json", "addr"], ["-json", "route", "show", "table", "all"], ["-json", "link"])
    told = [json.loads(subprocess.check_output(["ip", *each])) for each in words]
    for device in told[0]:
        for address in device["addr_info"]:
            address.pop("valid_life_time", None)
            address.pop("preferred_life_time", None)
    return json.dumps(told)


def namespaces() -> set[str]:
    return {path.name for path in NAMESPACES.iterdir()} if NAMESPACES.exists() else set()


def test_a_host_has_its_own_name_network_and_home(lab: Lab) -> None:
    for host in lab.hosts:
        assert said(lab, host, "hostname") == host
        assert said(lab, host, "pwd") == str(lab.home(host))
        assert said(lab, host, "ls", "/sys/class/net").split() == ["eth0", "lo"]
        assert said(lab, host, "getent", "ahostsv4", host).split()[0] == lab.address(host)
        assert lab.address(host) in said(lab, host, "ip", "-4", "addr", "show", "dev", "eth0")
    assert len({lab.address(host) for host in lab.hosts}) == 3
    assert len({lab.home(host) for host in lab.hosts}) == 3


def test_what_a_host_mounts_and_is_called_is_not_seen_outside(lab: Lab) -> None:
    assert said(lab, "h1", "ls", "/run") == "sshd"
    assert str(lab.folder) not in Path("/proc/mounts").read_text()
    assert os.uname().nodename != "h1"


def test_ssh_works_from_the_machine_and_between_hosts_without_questions(lab: Lab) -> None:
    over = [*lab.ssh("h2"), "hostname; pwd; ssh h3 hostname"]
    result = subprocess.run(over, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.split("\n") == ["h2", str(lab.home("h2")), "h3", ""]
    assert result.stderr == ""
    assert said(lab, "h1", *lab.ssh("h2"), "hostname") == "h2"


def test_ssh_between_hosts_crosses_the_link(plain: Lab) -> None:
    plain.link("h2", "down")
    over = [*plain.ssh("h2"), "true"]
    quick = ["-o", "ConnectTimeout=1"]
    assert plain.exec("h1", [*over[:-1], *quick, "true"], capture_output=True, timeout=60).returncode == 255


@pytest.mark.parametrize("rate_mbit", [50, 200])
def test_a_link_carries_its_rate_in_both_directions(plain: Lab, rate_mbit: int) -> None:
    plain.link("h1", "rate", f"{rate_mbit}mbit")
    for ends in (("h1", "h2"), ("h2", "h1")):
        check_rate(plain, *ends, rate=rate_mbit * 1e6)


def test_delays_of_both_hosts_add_up_there_and_back(plain: Lab) -> None:
    plain.link("h1", "delay", "20ms")
    plain.link("h2", "delay", "5ms")
    with serving(plain, "h2", ECHO), python(plain, "h1", ASK, plain.address("h2")) as asker:
        taken_s = [ask(asker) for _ in range(20)]
        # Tests beside this one may take its processor away for a while: that makes it slower, never faster.
        while len(taken_s) < 400 and min(taken_s) >= 0.030:
            taken_s.append(ask(asker))
        assert asker.stdin is not None
        asker.stdin.close()
    assert 0.025 <= min(taken_s) < 0.030


def test_a_delayed_link_still_carries_its_rate(plain: Lab) -> None:
    plain.link("h1", "rate", "50mbit", "delay", "2ms")
    check_rate(plain, "h1", "h2", rate=50e6)


@pytest.mark.parametrize("delay", ["0ms", "1ms"])
def test_a_lossy_link_loses_its_share_in_both_directions(plain: Lab, delay: str) -> None:
    plain.link("h1", "loss", "30%", "delay", delay)
    for sender, receiver in (("h1", "h2"), ("h2", "h1")):
        said(plain, sender, sys.executable, "-c", SPRAY, plain.address(receiver))  # finds the address once
        with serving(plain, receiver, COUNT) as counter:
            said(plain, sender, sys.executable, "-c", SPRAY, plain.address(receiver))
            assert 600 < int(counter.communicate(timeout=60)[0]) < 800


@pytest.mark.parametrize("delay", ["0ms", "1ms"])
def test_a_connection_outlives_a_link_that_is_down_for_a_while(plain: Lab, delay: str) -> None:
    plain.link("h1", "delay", delay)
    with serving(plain, "h2", ECHO), python(plain, "h1", ASK, plain.address("h2")) as asker:
        assert asker.stdin is not None
        assert asker.stdout is not None
        ask(asker)
        plain.link("h1", "down")
        asker.stdin.write("go\n")
        asker.stdin.flush()
        assert select.select([asker.stdout], [], [], 0.5)[0] == []
        plain.link("h1", "up")
        assert float(asker.stdout.readline()) > 0.5
        asker.stdin.close()


def test_a_power_cut_ends_all_of_a_host_and_it_can_be_started_again(lab: Lab) -> None:
    with serving(lab, "h3", SLEEP) as sleeper:
        lab.signal("h3", signal.SIGKILL)
        assert sleeper.wait(timeout=60) == -signal.SIGKILL
    assert subprocess.run([*lab.ssh("h3"), "true"], capture_output=True, check=False).returncode != 0
    lab.boot("h3")
    assert subprocess.run([*lab.ssh("h3"), "true"], check=True, timeout=60).returncode == 0


def test_a_lab_leaves_nothing_behind_and_the_machine_is_as_it_was(tmp_path: Path) -> None:
    before, network = namespaces(), own_network()
    folder = tmp_path / "lab"
    lab = Lab.up(folder, hosts=2, delay="1ms", rate="100mbit")
    state = read_state(folder)
    assert own_network() == network
    assert set(state.namespaces) <= namespaces() - before
    with serving(lab, "h1", SLEEP) as sleeper:
        started = [each for name in state.namespaces for each in processes_in(name)]
        assert len(started) == 5
        lab.down()
        assert sleeper.wait(timeout=60) == -signal.SIGKILL
    assert not any(is_alive(each) for each in started)
    assert not set(state.namespaces) & namespaces()
    assert own_network() == network
    assert list(tmp_path.iterdir()) == []
    lab.down()


def test_what_somebody_else_put_into_the_folder_stays(tmp_path: Path) -> None:
    with Lab.up(tmp_path / "lab", hosts=1) as lab:
        (lab.folder / "mine").write_text("mine")
    assert [path.name for path in (tmp_path / "lab").iterdir()] == ["mine"]


def test_labs_lie_beside_each_other(tmp_path: Path, lab: Lab) -> None:
    with Lab.up(tmp_path / "other", hosts=1) as other:
        assert said(other, "h1", "hostname") == "h1"
        with pytest.raises(TandemError, match="There is a lab in .*other already"):
            Lab.up(tmp_path / "other", hosts=1)
        assert said(other, "h1", "hostname") == "h1"
    assert said(lab, "h1", "hostname") == "h1"


def test_the_commands_make_show_change_and_remove_a_lab(tmp_path: Path) -> None:
    try:
        made = tandem(tmp_path, "up", "--hosts", "2", "--rate", "1gbit", "--delay", "0.2ms")
        assert (made.returncode, made.stderr) == (0, "")
        assert "ssh -F" in made.stdout
        assert tandem(tmp_path, "exec", "h2", "--", "sh", "-c", "hostname; exit 3").returncode == 3
        changed = tandem(tmp_path, "link", "h2", "rate", "200mbit", "loss", "1%")
        assert changed.stdout == "h2: up, 200 Mb/s, 0.2 ms, 1 % loss\n"
        assert "200 Mb/s" in tandem(tmp_path, "list").stdout
        wrong = tandem(tmp_path, "exec", "h3", "true")
        assert wrong.stderr == "error: The lab has no host 'h3': it has h1, h2.\n"
        inside = tandem(tmp_path, "exec", "h1", "--", TANDEM, "lab", "down")
        assert "This is a host of a lab" in inside.stderr
    finally:
        removed = tandem(tmp_path, "down")
    assert (removed.returncode, removed.stdout) == (0, "lab lab is removed.\n")
    assert tandem(tmp_path, "down").returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_lab_stopped_in_the_making_is_removed(tmp_path: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "TANDEM_LABS": str(tmp_path)}
    words = [TANDEM, "lab", "up", "--hosts", "20", "--delay", "1ms"]
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as maker:
        made = tmp_path / "lab/files/wire-h3.log"
        while not made.exists():
            assert maker.poll() is None
        maker.send_signal(number)
        assert maker.wait(timeout=60) != 0
    left = {path.name for path in tmp_path.iterdir()}
    names = read_state(tmp_path / "lab").namespaces if (tmp_path / "lab").exists() else []
    # Whoever is killed cannot clean up; whoever is asked to stop does.
    assert bool(left) == (number == signal.SIGKILL)
    assert bool(set(names) & namespaces()) == (number == signal.SIGKILL)
    assert tandem(tmp_path, "down").returncode == 0
    assert not (tmp_path / "lab").exists()
    assert not set(names) & namespaces()


def test_a_process_that_took_over_a_number_is_left_alone(tmp_path: Path) -> None:
    lab = Lab.up(tmp_path / "lab", hosts=1)
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        state = read_state(lab.folder)
        taken = replace(identify(stranger.pid), ticks=1)
        write_state(lab.folder, state.having(replace(state.hosts["h1"], sshd=taken)))
        lab.down()
        assert stranger.poll() is None
        stranger.kill()
    assert not set(state.namespaces) & namespaces()


def test_after_another_start_of_the_machine_only_files_are_removed(tmp_path: Path) -> None:
    lab = Lab.up(tmp_path / "lab", hosts=1)
    state = read_state(lab.folder)
    shutil.copytree(lab.folder, tmp_path / "copy")
    lab.down()
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        host: Host = replace(state.hosts["h1"], sshd=identify(stranger.pid))
        write_state(tmp_path / "copy", replace(state.having(host), boot="another"))
        later = Lab(tmp_path / "copy")
        assert not later.is_running
        with pytest.raises(TandemError, match="started anew"):
            later.command("h1", ["true"])
        later.down()
        assert stranger.poll() is None
        stranger.kill()
    assert list(tmp_path.iterdir()) == []
