import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from tandem.errors import TandemError
from tandem.launch import first, local_socket
from tandem.launch.first import first_of_host
from tandem.launch.local_socket import private_folder


def place(local_rank: int, *, ranks: int, port: str) -> dict[str, str]:
    return {
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }


@pytest.fixture
def port() -> str:
    return secrets.token_hex(8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where these ranks meet."""
    monkeypatch.setattr(local_socket, "TEMPORARY", tmp_path)
    return private_folder({})


def test_one_rank_alone_is_the_first() -> None:
    with first_of_host({}) as is_first:
        assert is_first


def test_the_others_wait_until_the_first_is_done(port: str) -> None:
    done = Event()

    def rank(number: int) -> tuple[bool, bool]:
        with first_of_host(place(number, ranks=3, port=port)) as is_first:
            if is_first:
                done.set()
            return is_first, done.is_set()

    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(rank, number) for number in (1, 2)]
        assert not any(other.done() for other in others)
        assert rank(0) == (True, True)
        assert [other.result(timeout=30) for other in others] == [(False, True)] * 2


def test_when_the_first_fails_so_do_the_others(port: str) -> None:
    def other() -> None:
        with first_of_host(place(1, ranks=2, port=port)):
            pytest.fail("this must not run")

    def leader() -> None:
        with first_of_host(place(0, ranks=2, port=port)):
            raise TandemError("No space.")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other)
        # It may come between two that fail, and finds the next.
        while not waiting.done():
            with pytest.raises(TandemError, match="No space"):
                leader()
        with pytest.raises(TandemError, match="could not make the data ready"):
            waiting.result()


def test_nobody_waits_for_ever_for_ranks_that_do_not_start(
    port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first, "PATIENCE_S", 0.05)
    leader, other = (place(number, ranks=2, port=port) for number in (0, 1))
    with pytest.raises(TandemError, match="Only 1 of the 2 ranks of .* have started"), first_of_host(leader):
        pass
    with pytest.raises(TandemError, match="The first rank of .* has not started"), first_of_host(other):
        pass


def test_a_long_address_is_a_meeting_place_too(port: str) -> None:
    far = {"MASTER_ADDR": f"{'a' * 63}.{'b' * 63}.svc.cluster.local"}

    def rank(number: int) -> bool:
        with first_of_host(place(number, ranks=2, port=port) | far) as is_first:
            return is_first

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rank, (0, 1))) == [True, False]


def test_two_runs_that_meet_at_one_port_are_refused(port: str) -> None:
    here = place(0, ranks=2, port=port)
    with pytest.raises(ZeroDivisionError), first_of_host(here):
        with pytest.raises(TandemError, match="another MASTER_PORT"), first_of_host(here):
            pass
        raise ZeroDivisionError


def test_one_that_was_killed_leaves_no_place_taken(port: str, folder: Path) -> None:
    program = (
        "import os, pathlib, signal\n"
        "from tandem.launch import local_socket\n"
        f"local_socket.TEMPORARY = pathlib.Path({str(folder.parent)!r})\n"
        "from tandem.launch.first import first_of_host\n"
        f"with first_of_host({place(0, ranks=2, port=port)!r}):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(folder.iterdir())

    def rank(number: int) -> bool:
        with first_of_host(place(number, ranks=2, port=port)) as is_first:
            return is_first

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rank, (1, 0))) == [False, True]


def test_nothing_is_left_and_nobody_else_may_enter(port: str, folder: Path) -> None:
    def rank(number: int) -> int:
        with first_of_host(place(number, ranks=2, port=port)) as is_first:
            return folder.stat().st_mode & 0o777 if is_first else 0

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rank, (0, 1))) == [0o700, 0]
    assert not list(folder.iterdir())


def test_a_socket_in_the_abstract_namespace_blocks_no_start(port: str) -> None:
    words = "-".join([str(os.getuid()), "127.0.0.1", port, ""])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as squatter:
        squatter.bind("\0tandem-" + hashlib.sha256(words.encode()).hexdigest())

        def rank(number: int) -> bool:
            with first_of_host(place(number, ranks=2, port=port)) as is_first:
                return is_first

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(rank, (0, 1))) == [True, False]
