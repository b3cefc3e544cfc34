"""What listens on the hosts of a run, and strangers on their network and on a host itself who try all of it."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks.faulting import training, weights
from benchmarks.killing import write_recipe
from tests.listening import listeners, outside, without_launchers
from tests.strangers import NOBODY, intruding

from tandem.lab import Lab
from tandem.lab.process import processes_in
from tandem.lab.state import read_state
from tandem.runlog.event import RoundStarted

pytestmark = pytest.mark.xdist_group("training in a lab")
STEPS, AT_STEP = 120, 20
PATIENCE = ("--host-timeout", "6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("head")
    write_recipe(folder, steps=STEPS, saved=20)
    return folder


@pytest.fixture(scope="module")
def undisturbed(lab: Lab, folder: Path) -> str:
    with training(lab, folder, "undisturbed", PATIENCE, hosts=2) as run:
        assert run.end() == 0, run.output.read_text()
    return weights(lab, "undisturbed")


def namespace(lab: Lab, host: str) -> str:
    return read_state(lab.folder).host(host).namespace


def inside(lab: Lab, host: str) -> list[str]:
    return ["ip", "netns", "exec", namespace(lab, host)]


def reachable(lab: Lab, host: str) -> set[str]:
    """Addresses beyond loopback with their ports, without ssh's."""
    return outside(without_launchers(listeners(namespace(lab, host))))


def test_each_host_of_a_run_listens_at_one_place_and_at_none_before_and_after(lab: Lab, folder: Path) -> None:
    assert [reachable(lab, host) for host in lab.hosts] == [set()] * 3
    with training(lab, folder, "seen", ["train.max_steps=100000", *PATIENCE], hosts=2) as run:
        run.wait_for(lambda: run.last_step() >= AT_STEP, "the first steps")
        places = [reachable(lab, host) for host in lab.hosts]
        (started,) = [each.event for each in run.records if isinstance(each.event, RoundStarted)]
        run.process.terminate()
        run.end()
    assert started.network == "mesh"
    assert [len(each) for each in places] == [1, 1, 0]
    for host, (place,) in zip(("h1", "h2"), places[:2], strict=True):
        assert place.startswith(f"{lab.address(host)}:")
    assert [reachable(lab, host) for host in lab.hosts] == [set()] * 3


def test_with_a_port_it_is_that_port(lab: Lab, folder: Path) -> None:
    words = ["train.max_steps=100000", "--port", "29411", *PATIENCE]
    with training(lab, folder, "port", words, hosts=2) as run:
        run.wait_for(lambda: run.last_step() >= 2, "the first steps")
        places = [reachable(lab, host) for host in ("h1", "h2")]
        run.process.terminate()
        run.end()
    assert places == [{f"{lab.address(host)}:29411"} for host in ("h1", "h2")]


def test_strangers_on_the_network_and_on_a_host_change_no_bit_and_stop_nothing(
    lab: Lab, folder: Path, undisturbed: str, tmp_path: Path
) -> None:
    targets = [f"{lab.address(host)}/{processes_in(namespace(lab, host))[0].pid}" for host in ("h1", "h2")]
    far, near = tmp_path / "far", tmp_path / "near"
    with ExitStack() as strangers:
        strangers.enter_context(intruding(far, user=0, targets=targets, prefix=inside(lab, "h3")))
        strangers.enter_context(intruding(near, user=NOBODY, prefix=inside(lab, "h1")))
        with training(lab, folder, "disturbed", PATIENCE, hosts=2) as run:
            assert run.end() == 0, run.output.read_text()
            assert run.count(RoundStarted) == 1
    assert int(far.read_text()) > 0
    assert int(near.read_text()) > 0
    assert weights(lab, "disturbed") == undisturbed


def test_who_has_no_key_of_the_start_gets_no_word_out_of_the_mesh(lab: Lab, folder: Path) -> None:
    with training(lab, folder, "keyless", ["train.max_steps=100000", *PATIENCE], hosts=2) as run:
        run.wait_for(lambda: run.last_step() >= 2, "the first steps")
        (place,) = reachable(lab, "h1")
        address, port = place.split(":")
        code = KEYLESS.format(address=address, port=port)
        done = subprocess.run(
            [*inside(lab, "h3"), sys.executable, "-P", "-c", code],
            capture_output=True,
            text=True,
            check=False,
        )
        run.process.terminate()
        run.end()
    assert done.stdout.split() == ["refused"] * 2, done.stderr


KEYLESS = """
import json, socket, ssl
from tandem.launch.identity import Identity
own = Identity("stranger")
plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
plain.check_hostname, plain.verify_mode = False, ssl.CERT_NONE
keyed = own.context(ssl.PROTOCOL_TLS_CLIENT, [own.certificate])
keyed.verify_mode = ssl.CERT_NONE
for context in (plain, keyed):
    try:
        with socket.create_connection(("{address}", {port}), 5) as connection:
            with context.wrap_socket(connection) as secure:
                secure.sendall(json.dumps(dict(do="announce", rank=0, port=1)).encode().ljust(256))
                print("answered" if secure.recv(1) else "refused")
    except OSError:
        print("refused")
"""
