"""Everything that listens while a command runs, as `ss` shows it: what docs/security.md says, and nothing else."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from tests.listening import add, listeners, outside, without_launchers
from tests.system.work import RECIPE

from tandem.lab import Lab
from tandem.lab.state import read_state

pytestmark = pytest.mark.xdist_group("lab")
TANDEM = [sys.executable, "-P", "-m", "tandem"]
SHORT = ["train.max_steps=6", "evaluate.every_steps=6", "checkpoint.every_steps=6", "--device", "cpu"]
PORT = 29_433
_LOOK_S = 0.1


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab.up(tmp_path_factory.mktemp("labs") / "lab", hosts=2) as lab:
        yield lab


@pytest.fixture(scope="module")
def first_run(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A folder that both hosts see, with a run of one worker, and what listened during that."""
    work = tmp_path_factory.mktemp("work")
    (work / "micro.yaml").write_text(RECIPE)
    seen, _ = watched(lab, [*TANDEM, "train", "micro.yaml", *SHORT], cwd=work)
    return work, seen["h1"]


@pytest.fixture
def work(first_run: tuple[Path, set[str]]) -> Path:
    return first_run[0]


def test_one_worker_listens_to_nobody(first_run: tuple[Path, set[str]]) -> None:
    assert first_run[1] == set()


def watched(
    lab: Lab, command: Sequence[str], *, cwd: Path, until: str = ""
) -> tuple[dict[str, set[str]], str]:
    """Whatever listened on each host at any time while a command ran in h1, and what it said.

    It is ended once it has said `until`.
    """
    seen: dict[str, dict[str, set[str]]] = {host: {} for host in lab.hosts}
    output = cwd / "output.txt"
    with output.open("w") as file:
        process = lab.start("h1", command, cwd=cwd, stdout=file, stderr=subprocess.STDOUT)
        code = None
        while code is None:
            is_ready = until and until in output.read_text()
            for host in lab.hosts:
                add(seen[host], listeners(namespace(lab, host)))
            if is_ready:
                process.terminate()
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(_LOOK_S)
    said = output.read_text()
    assert code == 0 or until, said
    for host in lab.hosts:
        assert without_launchers(listeners(namespace(lab, host))) == set(), "stays open"
    return {host: without_launchers(places) for host, places in seen.items()}, said


def namespace(lab: Lab, host: str) -> str:
    return read_state(lab.folder).host(host).namespace


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        (["train", "micro.yaml", *SHORT, "--run", "two", "--workers", "2"], 2),
        (["resume", "two", "train.max_steps=8", "--device", "cpu"], 2),
        (["doctor"], 0),
        (["report", "runs/micro"], 0),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else None,
)
def test_on_one_host_only_ranks_listen_and_on_loopback_alone(
    lab: Lab, work: Path, words: Sequence[str], ranks: int
) -> None:
    seen, _ = watched(lab, [*TANDEM, *words], cwd=work)
    assert outside(seen["h1"]) == set()
    assert len(seen["h1"]) == ranks
    # At an address of their own each, where nobody else looks for anything.
    assert not [place for place in seen["h1"] if place.startswith("127.0.0.1:")]


@pytest.mark.parametrize(
    ("words", "ready"),
    [
        (["dashboard", "."], "Dashboard at"),
        (["serve", "runs/micro", "--device", "cpu", "--engine", "torch"], "Translating at"),
    ],
    ids=["dashboard", "serve"],
)
def test_a_server_listens_on_loopback_at_its_port(
    lab: Lab, work: Path, words: Sequence[str], ready: str
) -> None:
    seen, _ = watched(lab, [*TANDEM, *words, "--port", str(PORT)], cwd=work, until=ready)
    assert seen["h1"] == {f"127.0.0.1:{PORT}"}


def test_a_lab_opens_nothing_where_it_is_made(tmp_path: Path) -> None:
    name = f"tandem-test-{tmp_path.name[-10:]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    enter = ["nsenter", f"--net=/run/netns/{name}", *TANDEM, "lab"]
    where = ["--folder", str(tmp_path)]
    try:
        subprocess.run([*enter, "up", "--hosts", "1", *where], check=True, capture_output=True)
        assert listeners(name) == {}
    finally:
        subprocess.run([*enter, "down", *where], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_the_doctor_and_its_hosts_listen_at_the_address_of_the_link_and_leave_nothing_open(
    lab: Lab, work: Path
) -> None:
    words = ["doctor", "micro.yaml", "--hosts", "h1,h2", "--ssh-config", str(lab.ssh_config), "--plain"]
    seen, said = watched(lab, [*TANDEM, *words, "--dir", "work"], cwd=work)
    for host in lab.hosts:
        reachable = outside(seen[host])
        assert reachable
        assert {place.rpartition(":")[0] for place in reachable} == {lab.address(host)}
    assert re.search(
        r"fine +h1: listeners: before [0-9.]+:22 \(sshd\); while summing also [0-9.:]+ \(the mesh\)", said
    ), said


@pytest.mark.parametrize("port", [0, PORT], ids=["any port", "a given port"])
def test_hosts_of_a_run_listen_at_the_address_of_the_link_from_the_first_second_on(
    lab: Lab, work: Path, port: int
) -> None:
    words = [
        "train",
        "micro.yaml",
        *SHORT,
        "--hosts",
        "h1,h2",
        "--ssh-config",
        str(lab.ssh_config),
        "--plain",
    ]
    words += ["--run", f"hosts-{port}", "--dir", f"work-{port}", *(["--port", str(port)] if port else [])]
    seen, _ = watched(lab, [*TANDEM, *words], cwd=work)
    for host in lab.hosts:
        reachable = outside(seen[host])
        assert {place.rpartition(":")[0] for place in reachable} == {lab.address(host)}
        # The link measurement's, and the mesh's: the same where it is given.
        assert len(reachable) == 2
        assert not port or f"{lab.address(host)}:{port}" in reachable


class TestLaunchers:
    """Ranks that others start, on one host and on two."""

    def test_torchrun_listens_itself_and_its_ranks_do_not(self, lab: Lab, work: Path) -> None:
        launcher = [sys.executable, "-P", "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        train = ["-m", "--", "tandem", "train", "micro.yaml", *SHORT, "--run", "torchrun"]
        seen, said = watched(lab, [*launcher, "--master-port", str(PORT), *train], cwd=work)
        # Its own store and nothing else, and the user is told.
        assert {place.rpartition(":")[2] for place in outside(seen["h1"])} == {str(PORT)}
        assert "torchrun itself listens on every interface" in said

    @pytest.mark.parametrize("keys", [False, True], ids=["plainly", "with keys"])
    def test_mpirun_on_two_hosts(self, lab: Lab, work: Path, keys: bool) -> None:
        where = f"{lab.address('h1')}:2,{lab.address('h2')}:1"
        words = [*mpirun("-n", "3", "-H", where), "--run", f"mpi-{keys}", *SHORT]
        words += ["--key-folder", str(work / "keys")] if keys else []
        seen, said = watched(lab, words, cwd=work)
        reachable = {host: outside(seen[host]) for host in lab.hosts}
        for host, places in reachable.items():
            assert {place.rpartition(":")[0] for place in places} == {lab.address(host)}
        # The store beside rank 0's, and a listener each rank; or the mesh.
        assert [len(places) for places in reachable.values()] == ([1, 1] if keys else [3, 1])
        assert ("Between hosts nothing is encrypted" in said) is not keys
        assert list(work.glob("keys/*")) == []

    def test_mpirun_on_one_host(self, lab: Lab, work: Path) -> None:
        seen, said = watched(lab, [*mpirun("-n", "2"), "--run", "mpi-one", *SHORT], cwd=work)
        assert outside(seen["h1"]) == set()
        assert len(seen["h1"]) == 2
        assert "warning" not in said


def mpirun(*words: str) -> list[str]:
    if not shutil.which("mpirun"):
        pytest.skip("needs mpirun (Debian: openmpi-bin)")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", *words, *TANDEM, "train", "micro.yaml"]
