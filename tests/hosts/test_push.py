"""Prepared data over real ssh to hosts with disks of their own, through all that can happen on the way."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.prepared import RECIPE, content, make_prepared

from tandem.errors import TandemError
from tandem.lab import Lab
from tandem.launch.push import Standing, compare, push
from tandem.launch.ssh import Ssh
from tandem.lock import using
from tandem.progress import SILENT

pytestmark = pytest.mark.xdist_group("lab")
TANDEM = str(Path(sys.executable).with_name("tandem"))
PARTS = 40
PART_BYTES = 100_000


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk of 2 MB, mounted before the lab's hosts are made, which see what is mounted then."""
    folder = tmp_path_factory.mktemp("small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, small_disk: Path) -> Iterator[Lab]:
    with Lab.up(tmp_path_factory.mktemp("labs") / "a lab", hosts=2) as lab:
        yield lab


@pytest.fixture
def plain(lab: Lab) -> Iterator[Lab]:
    """The lab, whose links and disks are as they were when the test is over."""
    yield lab
    for host in lab.hosts:
        lab.link(host, "up", "rate", "none")
        shutil.rmtree(lab.home(host) / "work", ignore_errors=True)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with a recipe and its data, which no test changes."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "made-up.yaml").write_text(RECIPE)
    make_prepared(folder / "prepared/made-up", parts=PARTS, part_bytes=PART_BYTES)
    return folder


def words(lab: Lab, *more: str) -> list[str]:
    return [TANDEM, "data", "push", "made-up.yaml", "--ssh-config", str(lab.ssh_config), *more]


def tandem(lab: Lab, work: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(lab, *more), cwd=work, capture_output=True, text=True, check=False, timeout=100
    )


def there(lab: Lab, host: str) -> Path:
    return lab.home(host) / "work/prepared/made-up"


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def arrived(folder: Path) -> int:
    """How many bytes of the training shards have arrived in whole files, before all have."""
    partial = folder / "train.partial"
    return sum(path.stat().st_size for path in partial.glob("part-*")) if partial.exists() else 0


def test_the_command_brings_the_data_to_all_hosts_once(plain: Lab, work: Path) -> None:
    first = tandem(plain, work, "--hosts", "h1,h2", "--dir", "work")
    assert (first.returncode, first.stdout) == (0, "All of h1, h2 have the data.\n")
    assert "Data to h1: 4.4 MB" in first.stderr
    assert "Data to h2: 4.4 MB" in first.stderr
    for host in plain.hosts:
        assert content(there(plain, host)) == content(work / "prepared/made-up")
    again = tandem(plain, work, "--hosts", "h1,h2", "--dir", "work")
    assert again.returncode == 0
    assert "h1 has the same data in work/prepared/made-up already." in again.stderr
    assert "Data to" not in again.stderr


def test_on_a_shared_disk_there_is_nothing_to_do(plain: Lab, work: Path) -> None:
    done = tandem(plain, work, "--hosts", "h1,h2")
    assert done.returncode == 0
    assert done.stderr.count("has the same data in") == 2
    assert "Checking" not in done.stderr


def test_a_power_cut_there_and_a_second_push_goes_on(plain: Lab, work: Path) -> None:
    plain.link("h2", "rate", "10mbit")
    target = there(plain, "h2")
    with subprocess.Popen(
        words(plain, "--hosts", "h2", "--dir", "work"), cwd=work, stderr=subprocess.PIPE, text=True
    ) as pusher:
        wait_for(lambda: arrived(target) > 5 * PART_BYTES)
        plain.signal("h2", signal.SIGKILL)
        _, said = pusher.communicate(timeout=60)
    assert pusher.returncode == 1
    assert "error: The connection to h2 broke off" in said
    assert "give the same command again" in said
    kept = arrived(target)
    assert kept > 5 * PART_BYTES
    assert not (target / "train").exists()
    plain.boot("h2")
    plain.link("h2", "rate", "none")
    again = tandem(plain, work, "--hosts", "h2", "--dir", "work")
    assert again.returncode == 0, again.stderr
    sent_mb = next(line for line in again.stderr.splitlines() if line.startswith("Data to h2")).split()[3]
    assert float(sent_mb) * 1e6 <= PARTS * PART_BYTES - kept + 100_000
    assert content(target) == content(work / "prepared/made-up")


def test_a_link_that_is_down_for_a_moment_only_delays_it(plain: Lab, work: Path) -> None:
    plain.link("h2", "rate", "20mbit")
    target = there(plain, "h2")
    with subprocess.Popen(
        words(plain, "--hosts", "h2", "--dir", "work"), cwd=work, stderr=subprocess.DEVNULL
    ) as pusher:
        wait_for(lambda: arrived(target) > 3 * PART_BYTES)
        plain.link("h2", "down")
        assert not (target / "train").exists()
        plain.link("h2", "up", "rate", "none")
        assert pusher.wait(timeout=60) == 0
    assert content(target) == content(work / "prepared/made-up")


def test_ctrl_c_ends_it_on_both_sides_and_it_goes_on_later(plain: Lab, work: Path) -> None:
    plain.link("h1", "rate", "10mbit")
    target = there(plain, "h1")
    with subprocess.Popen(
        words(plain, "--hosts", "h1", "--dir", "work"), cwd=work, stderr=subprocess.PIPE, text=True
    ) as pusher:
        wait_for(lambda: arrived(target) > 3 * PART_BYTES)
        pusher.send_signal(signal.SIGINT)
        _, said = pusher.communicate(timeout=60)
    assert pusher.returncode == 130
    assert "Traceback" not in said
    wait_for(lambda: not (target.parent / "made-up.lock").exists())
    plain.link("h1", "rate", "none")
    push(
        work / "prepared/made-up",
        ["h1"],
        Ssh(config=plain.ssh_config),
        folder="work/prepared/made-up",
        progress=SILENT,
    )
    assert content(target) == content(work / "prepared/made-up")


def test_each_host_is_compared_by_itself(plain: Lab, work: Path) -> None:
    ssh, source = Ssh(config=plain.ssh_config), work / "prepared/made-up"
    make_prepared(there(plain, "h2"), seed=1)
    assert compare(source, ["h1", "h2"], ssh, folder="work/prepared/made-up") == {
        "h1": Standing(state="missing", file=str(there(plain, "h1") / "recipe.yaml")),
        "h2": Standing(state="different", file=str(there(plain, "h2") / "subword/manifest.json")),
    }


def test_a_disk_without_room_is_told_with_what_is_lacking(plain: Lab, work: Path, small_disk: Path) -> None:
    done = tandem(plain, work, "--hosts", "h1", "--dir", str(small_disk))
    assert done.returncode == 1
    assert (
        f"error: h1: {small_disk}/prepared/made-up needs 4.4 MB and its disk has 2.1 MB free" in done.stderr
    )
    assert list(small_disk.rglob("*.bin")) == []


def test_data_that_a_training_there_uses_is_not_replaced(plain: Lab, work: Path) -> None:
    target = make_prepared(there(plain, "h1"), seed=1)
    before = content(target)
    with using(target):
        done = tandem(plain, work, "--hosts", "h1,h2", "--dir", "work")
    assert done.returncode == 1
    assert f"error: h1: {target} is in use by process" in done.stderr
    assert content(target) == before
    assert content(there(plain, "h2")) == content(work / "prepared/made-up")


def test_a_host_without_tandem_is_told(plain: Lab, work: Path) -> None:
    done = tandem(plain, work, "--hosts", "h1", "--dir", "work", "--python", "/usr/bin/no-python")
    assert done.stderr == (
        "error: h1 has no /usr/bin/no-python: install Tandem there in the same place, or give --python.\n"
    )


def test_a_host_that_nobody_knows_is_told(plain: Lab, work: Path) -> None:
    with pytest.raises(TandemError, match=r"Cannot reach h9 over ssh"):
        compare(work / "prepared/made-up", ["h9"], Ssh(config=plain.ssh_config), folder="work")
